"""Configuring VPP and FreeBSD for IPv6, tags and labels: their commands, what stays, what is not set up, restore."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import pytest

from lineproof.errors import TestbedError
from lineproof.routers import RouterKind, make_router
from lineproof.routers.base import Result
from lineproof.traffic.catalogue import Catalogue
from lineproof.traffic.frame_kinds import FrameKind, FrameKinds
from support.fake_router import SIDES
from support.paths import VARIABLES

ALL: tuple[FrameKind, ...] = ("ipv6", "vlan", "mpls")
FRAMES = FrameKinds.of(Catalogue.read(VARIABLES / "profiles"), ALL)


class Recorder:
    """A shell that answers by *answer* and keeps all other commands."""

    def __init__(self, answer: Callable[[str, list[str]], str | None]) -> None:
        self.commands: list[str] = []
        self._answer = answer

    def __call__(self, command: str, limit: float) -> Result:
        words = shlex.split(command)
        if words[:2] != ["sh", "-c"]:
            return Result(self.one(command), "", 0, 0.0)
        rows = re.findall(r'(?:^|; )(.*?); echo "@@lineproof (\d+) \$\?"', words[2])
        return Result("".join(f"{self.one(line)}@@lineproof {number} 0\n" for line, number in rows), "", 0, 0.0)

    def one(self, line: str) -> str:
        shown = self._answer(line, self.commands)
        if shown is None:
            self.commands.append(line)
        return shown or ""


def vpp(line: str, done: list[str]) -> str | None:
    """As VPP v26.10 shows nothing of these, or what was made since."""
    words = line.removeprefix("vppctl show ")
    if words == line:
        return None
    made = [row.split() for row in done if row.startswith("vppctl create sub-interfaces ")]
    if words == "interface address":
        names = ["eth1", "eth2", *(f"{row[3]}.{row[4]}" for row in made)]
        return "".join(f"{name} (dn):\n" for name in names)
    if words.startswith("ip neighbor"):
        added = [row.split() for row in done if row.startswith("vppctl set ip neighbor ") and row.endswith(" static")]
        taken = {tuple(row.split()[5:7]) for row in done if row.startswith("vppctl set ip neighbor del ")}
        rows = [row for row in added if tuple(row[4:6]) not in taken]
        return "Age  IP  Flags  Ethernet  Interface\n" + "".join(
            f"1.0  {row[5]}  S  {row[6]}  {row[4]}\n" for row in rows
        )
    if words.startswith("ip6 interface"):
        return "IP6 disabled\n"
    return {"ip table": "[0] table_id:0 ipv4-VRF:0\n", "ip6 table": "[0] table_id:0 ipv6-VRF:0\n"}.get(words, "")


def freebsd(line: str, done: list[str]) -> str | None:
    shown = {
        "sysctl -n net.inet6.ip6.forwarding": f"{int('sysctl net.inet6.ip6.forwarding=1' in done)}\n",
        "ifconfig eth1": "eth1: flags=8843<UP> mtu 1500\n\tnd6 options=29<PERFORMNUD,IFDISABLED,AUTO_LINKLOCAL>\n",
        "ifconfig eth2": "eth2: flags=8843<UP> mtu 1500\n\tinet6 2001:2::6441:201 prefixlen 120\n",
        "sysctl -n net.fibs": "",
        "ifconfig -l": "eth1 eth2 lo0\n",
        "ndp -an": "Neighbor   Linklayer Address  Netif Expire    S Flags\n"
        "2001:2::6441:202   02:00:00:00:02:02   eth2 permanent R\n",
        "netstat -rnW -f inet6": "Internet6:\n2001:2::3000:0/104   2001:2::6441:2ff   UGS   eth2\n",
    }
    return shown.get(line)


def undone(recorder: Recorder, before: int) -> list[str]:
    return recorder.commands[before:]


def test_vpp_is_configured_for_each_kind_of_frame_and_restored() -> None:
    shell = Recorder(vpp)
    router = make_router("vpp", shell)
    router.configure_frames(SIDES, FRAMES)
    commands = [line.removeprefix("vppctl ") for line in shell.commands]
    assert commands.index("enable ip6 interface eth1") + 1 == commands.index("ip6 nd eth1 ra-suppress")
    assert "ip route add 2001:2::1000:0/104 via 2001:2::6441:102 eth1" in commands
    assert "set ip neighbor eth2 2001:2::6441:202 02:00:00:00:02:02 static" in commands
    assert "create sub-interfaces eth1 29700 dot1q 100 exact-match" in commands
    assert "create sub-interfaces eth2 29701 dot1ad 200 inner-dot1q 100 exact-match" in commands
    assert "set interface ip6 table eth1.29701 29701" in commands
    assert "ip route add 48.0.0.0/8 table 29700 via 100.65.2.2 eth2.29700" in commands
    assert "ip route add 2001:2::3000:0/104 table 29701 via 2001:2::6441:202 eth2.29701" in commands
    # the first direction's label leads to the second side; the inner one of two is not at the bottom
    for bottom in ("eos", "non-eos"):
        assert f"mpls local-label add {bottom} 100 via 100.65.2.2 eth2 out-labels 100" in commands
        assert f"mpls local-label add {bottom} 200 via 100.65.1.2 eth1 out-labels 200" in commands
    [(needs, reason)] = router.not_forwarded.items()
    assert needs == {"vlan", "mpls"} and "without the tags" in reason
    changes = router.changes
    assert len(changes) == len(commands) and all(change.is_undoable(None) for change in changes)
    before = len(shell.commands)
    router.restore()
    assert undone(shell, before) == [shlex.join(change.undo) for change in reversed(changes)]
    assert router.not_forwarded == {} and router.notes == () and router.changes == ()


def test_tags_that_are_taken_are_said_and_nothing_stays() -> None:
    def taken(line: str, done: list[str]) -> str | None:
        return "eth1 (up):\neth2 (up):\n" if line == "vppctl show interface address" else vpp(line, done)

    shell = Recorder(taken)
    router = make_router("vpp", shell)
    with pytest.raises(TestbedError, match=r"VPP did not make eth1\.29700 for dot1q 100 .* may have these tags"):
        router.configure_frames(SIDES, FRAMES)


def test_freebsd_is_configured_for_ipv6_and_says_what_is_not_set_up() -> None:
    shell = Recorder(freebsd)
    router = make_router("freebsd", shell)
    router.configure_frames(SIDES, FRAMES)
    assert shell.commands == [
        "sysctl net.inet6.ip6.forwarding=1",
        "ifconfig eth1 inet6 -ifdisabled",
        "ifconfig eth1 inet6 2001:2::6441:101/120 alias",
        "ndp -s 2001:2::6441:102 02:00:00:00:01:02",
        "route -6 add -net 2001:2::1000:0/104 2001:2::6441:102",
        # address and neighbour of the second side are right already, and stay
        "route -6 change -net 2001:2::3000:0/104 2001:2::6441:202",
    ]
    assert {frozenset({"vlan"}), frozenset({"mpls"})} == set(router.not_forwarded)
    assert "no net.fibs" in router.not_forwarded[frozenset({"vlan"})]
    assert router.not_forwarded[frozenset({"mpls"})] == "FreeBSD's kernel has no MPLS: it forwards no labelled frames"
    assert all(change.is_undoable(None) for change in router.changes)
    before = len(shell.commands)
    router.restore()
    assert undone(shell, before) == [
        "route -6 change -net 2001:2::3000:0/104 2001:2::6441:2ff",
        "route -6 delete -net 2001:2::1000:0/104 2001:2::6441:102",
        "ndp -d 2001:2::6441:102",
        "ifconfig eth1 inet6 2001:2::6441:101 -alias",
        "ifconfig eth1 inet6 ifdisabled",
        "sysctl net.inet6.ip6.forwarding=0",
    ]


@pytest.mark.parametrize("kind", ["vpp", "freebsd"])
def test_a_rehearsal_lists_the_changes_and_makes_none(kind: RouterKind) -> None:
    shell = Recorder({"vpp": vpp, "freebsd": freebsd}[kind])
    router = make_router(kind, shell)
    with router.rehearsal() as found:
        router.configure_frames(SIDES, FRAMES)
    assert len(found) >= 5 and shell.commands == [] and router.not_forwarded == {}


def freebsd_with_fibs(line: str, done: list[str]) -> str | None:
    shown = {"sysctl -n net.fibs": f"{3 if 'sysctl net.fibs=3' in done else 1}\n", "ifconfig -l": "eth1 eth2 lo0\n"}
    if made := re.fullmatch(r"ifconfig (vlan\d+)", line):
        rows = (row for row in done if row.startswith(f"{line} inet 198.") and row.endswith(" alias"))
        return f"{made[1]}: flags=8843<UP> mtu 1500\n" + "".join(
            f"\tinet {row.split()[3].removesuffix('/24')} netmask 0xffffff00\n" for row in rows
        )
    return shown.get(line)


TAGS = FrameKinds.of(Catalogue.read(VARIABLES / "profiles"), [ALL[1]])


def test_freebsd_is_configured_for_tags_and_restored() -> None:
    shell = Recorder(freebsd_with_fibs)
    router = make_router("freebsd", shell)
    router.configure_frames(SIDES, TAGS)
    assert shell.commands[:7] == [
        "sysctl net.fibs=3",
        "ifconfig vlan29700 create vlan 100 vlandev eth1",
        "ifconfig vlan29700 up",
        "ifconfig vlan29700 fib 1",
        "ifconfig vlan29700 inet 198.18.10.1/24 alias",
        "setfib 1 arp -S 198.18.10.2 02:00:00:00:01:02",
        "setfib 1 route add -net 16.0.0.0/8 198.18.10.2",
    ]
    # two tags: the second interface is on the first
    assert "ifconfig vlan29702 create vlan 200 vlanproto 802.1ad vlandev eth1" in shell.commands
    assert "ifconfig vlan29703 create vlan 100 vlandev vlan29702" in shell.commands
    assert "setfib 2 route add -net 48.0.0.0/8 198.18.21.2" in shell.commands
    assert router.not_forwarded == {}
    assert any("stays so until a restart" in note for note in router.notes)
    changes = router.changes
    assert all(change.is_undoable(None) for change in changes)
    router.restore()
    assert shell.commands[-7:] == [
        "setfib 1 route delete -net 16.0.0.0/8 198.18.10.2",
        "setfib 1 arp -d 198.18.10.2",
        "ifconfig vlan29700 inet 198.18.10.1 -alias",
        "ifconfig vlan29700 fib 0",
        "ifconfig vlan29700 down",
        "ifconfig vlan29700 destroy",
        "sysctl net.fibs=3",
    ]


def test_a_name_that_somebody_else_has_is_said() -> None:
    def taken(line: str, done: list[str]) -> str | None:
        if line == "ifconfig vlan29700":
            return "vlan29700: flags=8843<UP> mtu 1500\n\tvlan: 7 vlanproto: 802.1q parent interface: eth1\n"
        return "eth1 eth2 vlan29700\n" if line == "ifconfig -l" else freebsd_with_fibs(line, done)

    shell = Recorder(taken)
    with pytest.raises(TestbedError, match="has an interface vlan29700 already"):
        make_router("freebsd", shell).configure_frames(SIDES, TAGS)
    assert shell.commands == ["sysctl net.fibs=3"]
