"""Reading and configuring a Linux router: files of this machine, a namespace with veth pairs, a simulated router."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lineproof.errors import TestbedError
from lineproof.routers import RouterKind, described, make_router
from lineproof.routers.base import Result
from lineproof.routers.described import side_words
from support.described_router import shipped
from support.fake_router import SIDES, shell_of, simulated
from support.journals import untouched


@pytest.mark.parametrize("forwards", ["0", "1"])
def test_lro_which_a_kernel_that_forwards_switches_off_is_switched_on_again(forwards: str) -> None:
    machine, _ = simulated("linux")
    machine.memory.sysctl["net.ipv4.ip_forward"] = forwards
    machine.memory.lro.add("eth2")
    router = make_router("linux", shell_of(machine), ("eth1", "eth2"))
    router.configure(SIDES)
    assert machine.memory.lro == (set() if forwards == "0" else {"eth2"})
    router.restore()
    assert machine.memory.lro == {"eth2"}


def test_a_card_that_keeps_lro_is_left_alone() -> None:
    machine, _ = simulated("linux")
    machine.memory.lro.add("eth2")
    whole, refused = shell_of(machine), list[str]()

    def shell(command: str, limit: float) -> Result:
        if "ethtool -K" not in command:
            return whole(command, limit)
        refused.append(command)
        return Result("", "Cannot change large-receive-offload", 1, 0.0)

    router = make_router("linux", shell, ("eth1", "eth2"))
    router.configure(SIDES)
    assert machine.memory.sysctl["net.ipv4.ip_forward"] == "1" and not any("lro" in note for note in router.notes)
    router.restore()
    assert machine.memory.sysctl["net.ipv4.ip_forward"] == "0"
    assert refused == ["ethtool -K eth2 lro off"]


@pytest.mark.parametrize("mac", ["02:00:00:00:01", "'; reload"])
@pytest.mark.parametrize("kind", ["vpp", "linux", "freebsd", "generic"])
def test_what_a_generator_reports_in_place_of_a_mac_address_never_reaches_the_shell(kind: RouterKind, mac: str) -> None:
    file = shipped("routeros") if kind == "generic" else None
    with pytest.raises(TestbedError, match="is not a MAC address"):
        make_router(kind, untouched, file=file).configure((replace(SIDES[0], peer_mac=mac),))


@pytest.mark.parametrize(
    ("family", "shown", "value"),
    [
        ("-4", "via 192.0.2.9 dev kr1", "via 192.0.2.9 dev kr1"),
        ("-4", "via 192.0.2.9 dev kr1 metric 100", None),
        (
            "-4",
            "metric 100 \n\tnexthop via 192.0.2.70 dev kr1 weight 1 \n\tnexthop via 192.0.2.71 dev kr1 weight 1",
            None,
        ),
        ("-6", "metric 1024 pref medium\n\tnexthop via 2001:db8::9 dev kr1 weight 1", "metric 1024 pref medium"),
    ],
)
def test_only_a_route_that_ours_replaces_is_put_back(family: str, shown: str, value: str | None) -> None:
    start = f"ip {family} route show"
    query = next(
        change.look
        for _, change, _ in described("linux").all_changes()
        if change.look and change.look.run.startswith(start)
    )
    look = query.look(dict.fromkeys(("network", "network6"), "48.0.0.0/8"))
    now = look.values(f"48.0.0.0/8 {shown}")[0]["value"]
    assert now.partition(" nexthop")[0] == (value or "none")


@pytest.mark.parametrize(
    ("shown", "value"),
    [
        ("inet 100.65.1.1 netmask 0xffffff00 broadcast 100.65.1.255", "0xffffff00"),
        ("inet 100.65.1.1/24 broadcast 100.65.1.255", "24"),
        ("inet 100.65.1.10 netmask 0xffffff00", "none"),
    ],
)
def test_masks_of_freebsd_of_both_forms_are_read(shown: str, value: str) -> None:
    query = described("freebsd").changes[1].look
    assert query is not None
    look = query.look(side_words(SIDES[0]))
    now = look.values(f"eth1: flags=8843<UP>\n\t{shown}\n")[0]["value"]
    assert now == value and look.is_ours(value) is (value in ("0xffffff00", "24"))
