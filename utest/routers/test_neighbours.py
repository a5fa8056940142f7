"""The router's neighbour entries of the generator's ports: what VPP, Linux and FreeBSD show, and what it means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lineproof.command_values import compiled
from lineproof.core.telemetry import NeighbourEntry
from lineproof.errors import TestbedError
from lineproof.routers import BUILT_IN, described, make_router
from support.described_router import with_examples
from support.fake_router import SIDES, shell_of, simulated
from support.scripted_shells import answering


@pytest.mark.parametrize(
    ("state", "permanent"),
    [("PERMANENT", True), ("NOARP", True), ("router STALE", False), ("DELAY", False), ("FAILED", None)],
)
def test_linuxs_entries_are_read_by_their_state(state: str, permanent: bool | None) -> None:
    text = f"100.65.1.2 dev eth1 lladdr 02:00:00:00:00:0A {state} \n100.65.1.9 dev eth1 INCOMPLETE \n"
    router = make_router("linux", answering({"ip neigh show": (text, 0)}))
    query = router.description.commands.neighbours
    assert query is not None
    found = [(row.found_at, row.mac, row.permanent) for row in router._neighbours(query)]
    assert found == ([] if permanent is None else [("eth1", "02:00:00:00:00:0a", permanent)])


@pytest.mark.parametrize("name", [*BUILT_IN, "ios", "junos", "routeros"])
def test_an_entry_that_is_not_understood_is_not_taken_for_none(name: str) -> None:
    query = with_examples(name).commands.neighbours
    assert query is not None
    address, mac = (str(query.expected[key]) for key in ("address", "mac"))
    cut = query.example.replace(mac, mac[:-3])
    head = "\n".join(line for line in query.example.splitlines() if not compiled(query.pattern[0]).search(line))
    assert len(query.entries(query.example, [address])) >= 1 and query.entries(head, [address]) == []
    for output in (cut, query.example.replace(address, "192.0.2.77") + cut, "table is busy\n"):
        with pytest.raises(TestbedError, match=f"^'{query.run}' was not understood: '"):
            query.entries(output, [address])
    assert len(query.entries(query.example + cut.replace(address, "192.0.2.77"), [address])) >= 1


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("linux", "/sys/class/net/eth1/flags:0x1003\n/sys/class/net/eth1/operstate:odd\n"),
        ("freebsd", "eth1: flags=8843<UP,BROADCAST> metric 0 mtu 1500\n\tstatus: associated\n"),
    ],
)
def test_a_state_that_is_not_known_is_no_missing_link_and_no_count_of_zero(kind: str, shown: str) -> None:
    link = described(kind).commands.link
    assert link is not None and {"up", "carrier", "no_carrier"} & link.results(shown, "eth1").keys() == {"up"}
    assert described("linux").commands.tables["softnet"].counts("/proc/uptime: 5\n") == {"": {}}
    with pytest.raises(ValueError, match="no counter"):
        described("freebsd").commands.tables["ip"].counts('{"statistics": {"icmp": {}}}')


ADDRESS = {
    "vpp": "vppctl set interface ip address eth{0} 100.65.{0}.1/24",
    "linux": "ip addr add 100.65.{0}.1/24 dev eth{0}",
    "freebsd": "ifconfig eth{0} inet 100.65.{0}.1/24 alias",
}
FIX = {
    "vpp": "vppctl set ip neighbor eth1 100.65.1.2 02:00:00:00:01:02 static",
    "linux": "ip neigh replace 100.65.1.2 lladdr 02:00:00:00:01:02 nud permanent dev eth1",
    "freebsd": "arp -S 100.65.1.2 02:00:00:00:01:02",
}
WORSE = {
    "vpp": "vppctl set ip neighbor eth1 100.65.1.2 {}",
    "linux": "ip neigh replace 100.65.1.2 lladdr {} nud stale dev eth1",
    "freebsd": "arp -S 100.65.1.2 {} temp",
}


@pytest.mark.parametrize("kind", sorted(FIX))
def test_missing_wrong_and_learned_entries_name_the_command_that_mends_them(kind: str) -> None:
    machine, _ = simulated(kind)
    router = make_router(kind, shell_of(machine))
    for number in (1, 2):
        machine.run(ADDRESS[kind].format(number))

    def first() -> NeighbourEntry:
        return router.neighbours(SIDES)[0]

    assert first().problem == "the router has no neighbour entry for 100.65.1.2 on eth1"
    machine.run(WORSE[kind].format("02:00:00:00:00:99"))
    assert "has 02:00:00:00:00:99, and the generator's port has 02:00:00:00:01:02" in first().problem
    machine.run(WORSE[kind].format("02:00:00:00:01:02"))
    assert not first().problem and "was learned, not set" in first().warning
    assert first().remedy == f"'{FIX[kind]}' on the router sets it"
    machine.run(first().fix)
    assert not first().problem and not first().warning
    # the MAC address of a port is not known before the generator is connected
    unknown = tuple(replace(side, peer_mac="") for side in SIDES)
    assert not router.neighbours(unknown)[0].problem


def test_entries_of_interfaces_for_tags_are_not_the_sides_own() -> None:
    rows = "100.65.1.2 dev lr0.100 lladdr 02:00:00:00:01:02 PERMANENT \n"
    router = make_router("linux", answering({"ip neigh show": (rows, 0)}))
    assert router.neighbours(SIDES[:1])[0].problem
    # but a bridge is another way to the same peer
    router = make_router("linux", answering({"ip neigh show": (rows.replace("lr0.100", "br0"), 0)}))
    found = router.neighbours(SIDES[:1])[0]
    assert not found.problem and found.found_at == "br0" and found.fix.endswith("dev br0")


@pytest.mark.parametrize(("other", "warned"), [("02:00:00:00:01:02", False), ("02:00:00:00:00:99", True)])
def test_a_second_entry_of_a_neighbour_that_differs_is_a_warning(other: str, warned: bool) -> None:
    rows = f"100.65.1.2 dev eth9 lladdr {other} STALE \n100.65.1.2 dev eth1 lladdr 02:00:00:00:01:02 PERMANENT \n"
    (found,) = make_router("linux", answering({"ip neigh show": (rows, 0)})).neighbours(SIDES[:1])
    assert not found.problem and (f"another one has {other} on eth9" in found.warning) is warned
    # an interface of the platform's own may be called as those are that are made for tags
    rows = rows.replace("eth1", "eth1.29700")
    side = replace(SIDES[0], interface="eth1.29700")
    assert not make_router("linux", answering({"ip neigh show": (rows, 0)})).neighbours((side,))[0].problem
