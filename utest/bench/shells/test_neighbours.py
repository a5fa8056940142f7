"""Neighbours of the simulated routers: set for good, or as if they were learned by ARP."""

from __future__ import annotations

import pytest

from support.fake_router import simulated

ADDRESSED = {
    "vpp": "vppctl set interface ip address eth1 100.65.1.1/24",
    "linux": "ip addr add 100.65.1.1/24 dev eth1",
    "freebsd": "ifconfig eth1 inet 100.65.1.1/24 alias",
}
MAC = "02:00:00:00:01:02"
LEARNED = {
    "vpp": f"vppctl set ip neighbor eth1 100.65.1.2 {MAC}",
    "linux": f"ip neigh replace 100.65.1.2 lladdr {MAC} nud reachable dev eth1",
    "freebsd": f"arp -S 100.65.1.2 {MAC} temp",
}
FOR_GOOD = {
    "vpp": f"vppctl set ip neighbor eth1 100.65.1.2 {MAC} static",
    "linux": f"ip neigh replace 100.65.1.2 lladdr {MAC} nud permanent dev eth1",
    "freebsd": f"arp -S 100.65.1.2 {MAC}",
}
SHOW = {"vpp": "vppctl show ip neighbors", "linux": "ip neigh show 100.65.1.2", "freebsd": "arp -an"}
FORGET = {
    "vpp": f"vppctl set ip neighbor del eth1 100.65.1.2 {MAC}",
    "linux": "ip neigh del 100.65.1.2 dev eth1",
    "freebsd": "arp -d 100.65.1.2",
}
SHOWN = {"vpp": (" D ", " S "), "linux": (" STALE ", " PERMANENT "), "freebsd": (" expires in ", " permanent ")}


@pytest.mark.parametrize("kind", sorted(SHOW))
def test_a_learned_neighbour_looks_learned_until_it_is_set_for_good(kind: str) -> None:
    machine, model = simulated(kind)
    for command, place in ((LEARNED, 0), (FOR_GOOD, 1), (LEARNED, 0)):
        for line in (ADDRESSED[kind], command[kind]):
            machine.run(line)
        output = machine.run(SHOW[kind]).stdout
        assert SHOWN[kind][place] in output and SHOWN[kind][1 - place] not in output, output
        assert len(model.state().configuration.neighbours) == 1
    machine.run(FORGET[kind])
    assert model.state().configuration.neighbours == model.state().configuration.learned == ()
