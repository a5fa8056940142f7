"""Parts of 'lineproof doctor': machines, cards, changes, frames that nobody asked for."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lineproof.ceilings import PublishedLimits, read_cards
from lineproof.commands.doctor import Check, State, _card, _facts, _host, _planned_changes, _port, _router
from lineproof.core.router_facts import NicFacts, RouterFacts
from lineproof.generators.base import GeneratorPort
from lineproof.project import packaged_variables
from lineproof.routers.journal import Change
from lineproof.session.links import dropped_by_card
from lineproof.system.login import Login
from lineproof.system.ssh_shell import Result, Shell
from lineproof.testbed.opening import GeneratorHost, read_generator_host, read_host
from lineproof_bench.shells.machine import Builtin, CommandOutput, Machine, Memory, common_commands
from support import robot_run
from support.command_line import lineproof
from support.described_router import description
from support.hostile_ssh import HostileServer, OpenHouse

NOISY = """\
testbed: noisy
description: a bridge beside a ConnectX that Linux lets send pause frames, a TRex without --hdrh
kind: simulated
nic: mlx5
faults: [{kind: foreign frames, start: 0, port: 1}]
habits: [{kind: coarse latency}]
"""


@pytest.mark.slow
def test_what_comes_unasked_is_named_and_flow_control_and_coarse_latency_with_their_remedy(tmp_path: Path) -> None:
    home = robot_run.project(tmp_path)
    (home / "variables" / "testbeds" / "noisy.yaml").write_text(NOISY)
    done = lineproof(tmp_path, "doctor", "noisy", "--platform", "netgate6100", "--listen", "20", cwd=home)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = done.stdout
    assert "ok       noise: port 0: no frame came in 20 s without traffic" in shown
    # five or six hellos in 10 s, whenever the first comes
    assert re.search(r"warning  noise: port 1: spanning tree from 02:00:00:00:00:fe, every (1\.[6-9]|2)", shown), shown
    assert "a trial of 10 s may count 6 of them" in shown or "a trial of 10 s may count 7 of them" in shown
    assert "flow control is on (rx and tx); switch it off: 'portattr -p 0 --fc none' in TRex's console" in shown
    assert "warning  latency: counted in histograms of one digit" in shown


@pytest.mark.parametrize(
    ("card", "addressed", "promiscuous", "dropped"),
    [
        ("02:00:00:00:00:01", "02:00:00:00:00:01", False, False),
        ("02:00:00:00:00:0A", "02:00:00:00:00:0a", False, False),
        ("02:00:00:00:00:01", "02:00:00:00:00:99", False, True),
        ("02:00:00:00:00:01", "02:00:00:00:00:99", None, True),
        ("02:00:00:00:00:01", "02:00:00:00:00:99", True, False),
        ("", "02:00:00:00:00:99", False, False),
    ],
)
def test_a_card_that_would_drop_what_the_router_sends_is_named(
    card: str, addressed: str, promiscuous: bool | None, dropped: bool
) -> None:
    port = GeneratorPort(0, addressed, 10e9, True, "net_i40e", card_mac=card, promiscuous=promiscuous)
    assert ("'promiscuous: true'" in dropped_by_card(port, addressed)) is dropped


FILES = {card.card: card for card in read_cards(packaged_variables() / "generators")}


def said(card: str, link_bps: float = 10e9, calibrated: bool = False) -> list[Check]:
    limits = PublishedLimits(FILES[card], "named", (), link_bps, "v3.06")
    headroom = SimpleNamespace(why_unfit="") if calibrated else None
    generator = SimpleNamespace(known_limits=limits, headroom=headroom)
    return list(_card(cast(Any, SimpleNamespace(generator=generator))))


@pytest.mark.parametrize("card", FILES)
def test_a_source_is_in_the_details_alone(card: str) -> None:
    checks = said(card)
    assert all("http" not in str(check) and len(str(check)) < 330 for check in checks), max(map(str, checks), key=len)
    assert all("https://" in str(check.details) for check in checks[1:])


@pytest.mark.parametrize(
    ("link_bps", "calibrated", "state"),
    [(10e9, False, State.WARNING), (1e9, False, State.WARNING), (1e8, False, State.OK), (10e9, True, State.OK)],
)
def test_a_virtual_card_is_a_warning_where_the_line_rate_asks_for_more(
    link_bps: float, calibrated: bool, state: State
) -> None:
    slow, dropping = (
        next(check for check in said("virtual", link_bps, calibrated) if part in check.finding)
        for part in ("a vSwitch in between", "frames that the host drops")
    )
    assert slow.state is dropping.state is state


@pytest.mark.parametrize(("name", "saved"), [("saving", True), ("in reverse", False)])
def test_a_dry_run_lists_what_is_saved_before_the_changes(name: str, saved: bool) -> None:
    change = Change(("a", "b"), ("c",))
    session: Any = SimpleNamespace(
        plan=SimpleNamespace(testbed=SimpleNamespace(prepare="configure"), command_file=description(name)),
        generator=SimpleNamespace(connected=True),
        router=SimpleNamespace(planned_changes=lambda: ((change,), "")),
    )
    (check,) = _planned_changes(session)
    first, *lines = check.finding.splitlines()
    assert first.startswith("a run makes 1 change, undone at its end")
    expected = ["copy running-config flash:before    (before them, so that they can be undone)"] if saved else []
    assert [line.strip() for line in lines] == [*expected, "a / b    (undone by: c)"]


def test_a_dry_run_says_that_nothing_is_changed_on_a_router_without_a_login() -> None:
    router = SimpleNamespace(
        is_black_box=True,
        connect=lambda: {},
        restore=lambda: None,
        leftovers=lambda: (),
        journal_name="",
        driver=SimpleNamespace(link_states=lambda: ()),
    )
    plan = SimpleNamespace(
        command_file=None,
        platform=SimpleNamespace(platform="box"),
        testbed=SimpleNamespace(testbed="lab", prepare="none", power=None),
    )
    facts, generator = SimpleNamespace(router=None), SimpleNamespace(connected=False)
    session: Any = SimpleNamespace(plan=plan, testbed=SimpleNamespace(facts=facts), generator=generator, router=router)
    *_, last = _router(session, traffic=False, dry_run=True)
    assert str(last) == "ok       router configuration: a run changes nothing: the testbed file says 'prepare: none'"


def host_shell() -> Shell:
    def said(text: str) -> Builtin:
        return lambda arguments, line: CommandOutput(text)

    folder = "/sys/devices/pci0000:00/0000:03:00.0"
    texts = {
        "/etc/os-release": 'PRETTY_NAME="Ubuntu 24.04"\nID=ubuntu\n',
        f"{folder}/uevent": "DRIVER=i40e\nPCI_CLASS=20000\nPCI_ID=8086:1572\n",
        f"{folder}/net/enp3s0f0/uevent": "INTERFACE=enp3s0f0\n",
        **{f"{folder}/{end}_link_width": f"{lanes}\n" for end, lanes in (("current", 4), ("max", 8))},
        **{f"{folder}/{end}_link_speed": "8.0 GT/s PCIe\n" for end in ("current", "max")},
        f"{folder}/numa_node": "1\n",
    }
    files = {path: (lambda line, text=text: text) for path, text in texts.items()}
    tools = {
        "ethtool": said("driver: i40e\nfirmware-version: 4.26 0x8\n"),
        "lspci": said("0000:03:00.0 Ethernet: X710\n"),
    }
    no_router: Any = None
    machine = Machine({**common_commands(files), **tools}, no_router, Memory())

    def shell(command: str, limit: float) -> Result:
        output = machine.run(command)
        return Result(output.stdout, output.stderr, output.status, 0.0)

    return shell


def test_the_generators_host_is_read_and_what_is_badly_placed_is_named() -> None:
    host = GeneratorHost(read_host(host_shell()))
    generator = SimpleNamespace(known_limits=None, slower_words=lambda port: "")
    session: Any = SimpleNamespace(testbed=SimpleNamespace(host=host), generator=generator)
    facts, slot = _host(session)
    assert "operating system: Ubuntu 24.04" in str(facts.details) and facts.state is State.OK
    assert "model X710, driver i40e, firmware 4.26 0x8, PCIe x4 8 GT/s of x8 8 GT/s, NUMA node 1" in str(facts.details)
    assert "0000:03:00.0 (X710) runs at PCIe x4 8 GT/s and can x8 8 GT/s" in str(slot) and slot.state is State.WARNING
    port = GeneratorPort(0, "02:00:00:00:00:01", 10e9, True, "net_i40e", pci="0000:03:00.0", numa=1, cores=(2,))
    (line,) = _port(session, port, "")
    assert line.finding.endswith(", driver net_i40e, firmware 4.26 0x8, 1 core for its pair, NUMA node 1")


@pytest.mark.slow
def test_the_generators_host_is_read_over_ssh(tmp_path: Path) -> None:
    def kernel(process: Any) -> None:
        process.stdout.write(b"6.8.0-made-up\n")
        process.exit(0)

    with closing(HostileServer(tmp_path, OpenHouse, process_factory=kernel)) as server:
        host = read_generator_host(server.login())
    assert host is not None and host.facts.kernel == "6.8.0-made-up"


def test_a_host_that_refuses_the_login_is_a_warning() -> None:
    host = read_generator_host(Login(address="127.0.0.1", port=1, user="trex", key_from="NO_SUCH_KEY"))
    (check,) = _host(cast(Any, SimpleNamespace(testbed=SimpleNamespace(host=host))))
    assert check.state is State.WARNING and check.finding.startswith("what it is is not read: ")


def test_a_router_that_differs_from_the_platforms_file_or_heeds_pause_frames_is_a_warning() -> None:
    nics = (NicFacts("eth1", flow_control="rx"), NicFacts("eth2", flow_control="off"))
    facts = RouterFacts(version="22.02", workers=3, nics=nics).beside("24.06", 2, None)
    session: Any = SimpleNamespace(router=SimpleNamespace(facts=facts), plan=SimpleNamespace(command_file=None))
    _, *warnings = _facts(session)
    assert {check.state for check in warnings} == {State.WARNING}
    paused, version, workers = (check.finding for check in warnings)
    assert paused.startswith("eth1: flow control is on (rx)") and "says 24.06, the router reports 22.02" in version
    assert "says 2, the router has 3" in workers
