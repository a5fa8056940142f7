"""A real TRex and a kernel router with a bridge on each cable: spanning tree, and links that come late (TREX_HOME)."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lineproof.commands.main import main
from lineproof.core.rule import Ruling
from lineproof.core.trial import Fault
from lineproof.core.verdict import Verdict
from lineproof.errors import TestbedError
from lineproof.session.session import Session
from support.paths import ROOT
from support.patience import wait_until
from support.real_trex import REASON
from support.simulated_session import judged, run_in_router, started

pytestmark = [pytest.mark.netns, pytest.mark.skipif(REASON != "", reason=REASON)]

SPANNING_TREE = ("stp_state", "1", "hello_time", "100", "forward_delay", "200", "max_age", "600")
"""A hello each second, and 4 s until frames pass; the kernel's units are 10 ms."""


def put_bridges_between(session: Session, *options: str) -> None:
    """Each cable ends at a bridge, and from there another one leads to the router's interface, with its name and MAC.

    Of side 0: generator - ``wire0`` - ``bridge0`` - ``inner0`` - the router's interface.
    """
    for index, side in enumerate(session.testbed.facts.sides):
        name, bridge, wire, inner = side.interface, f"bridge{index}", f"wire{index}", f"inner{index}"
        mac = f"02:6c:72:00:02:{index:02x}"
        for command in (
            f"ip link set {name} down",
            f"ip link set {name} name {wire} address 02:6c:72:00:03:{index:02x}",
            f"ip link add {name} address {mac} mtu 9216 type veth peer name {inner} mtu 9216",
            f"ip link add {bridge} type bridge mcast_snooping 0 {' '.join(options)}",
            f"ip link set {wire} master {bridge}",
            f"ip link set {inner} master {bridge}",
            *(f"ip link set {each} up" for each in (bridge, wire, inner)),
        ):
            run_in_router(session, *command.split())


@contextmanager
def opened(folder: Path, *options: str) -> Iterator[Session]:
    """The testbed with bridges, its generator and router connected."""
    with started(folder, ("linux_router", "linux", "netns-trex")) as session:
        put_bridges_between(session, *options)
        session.generator.connect()
        session.router.connect()
        yield session


def take_down(session: Session, end: str) -> None:
    """One end of the first cable, and what TRex says of it: it looks at its links only now and then."""
    run_in_router(session, "ip", "link", "set", end, "down")
    if end == "wire0":
        wait_until(lambda: not session.generator.driver.ports[0].link_up)


def settled(session: Session, sentence: str) -> Verdict:
    """The verdict; a machine that others use too may be late a few times, which decides nothing."""
    for _ in range(3):
        found = judged(session, sentence)
        late = any(fault.value in found.message for fault in (Fault.UNDER_OFFERED, Fault.UNTIMED))
        if found.ruling is not Ruling.INCONCLUSIVE or not late:
            break
    return found


def test_doctor_names_the_bridge_that_sends_spanning_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start = Session.start

    def bridged(*arguments: Any, **more: Any) -> Session:
        session = start(*arguments, **more)
        put_bridges_between(session, *SPANNING_TREE)
        return session

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(Session, "start", bridged)
    words = ("--platform", "linux_router", "--listen", "5", "--traffic", "--calibrations", str(tmp_path))
    status = main(["doctor", "netns-trex", *words])
    printed = capsys.readouterr().out
    assert status == 0, printed
    for port in (0, 1):
        said = rf"warning  noise: port {port}: spanning tree from 02:6c:72:00:03:0{port}\b.*\b1(\.\d)? (s|a second)\b"
        assert re.search(said, printed), printed
    assert "ok       traffic: frames sent into each side came back at the other" in printed


def test_verdicts_are_right_beside_spanning_tree(tmp_path: Path) -> None:
    with opened(tmp_path, *SPANNING_TREE) as session:
        session.router.configure()
        # the bridges let nothing pass for 4 s
        session.traffic.check_reachability()
        good = settled(session, "64b bidirectional ≥ 2 kpps each way")
        assert all(session.traffic.foreign.received[port] for port in (0, 1))
        run_in_router(session, *["ip", "route", "add", "blackhole", "48.0.0.0/12"])
        bad = settled(session, "64b 256-networks bidirectional ≥ 2 kpps each way")
    assert good.ruling is Ruling.PASS, good.message
    # bridges send one in 2 s; a clock may make trials longer
    most = [(trial.outcome.duration + 4, row.foreign) for trial in good.trials for row in trial.outcome.directions]
    assert all(0 <= foreign <= seconds for seconds, foreign in most) and any(foreign for _, foreign in most)
    assert bad.ruling is Ruling.FAIL, bad.message


@pytest.mark.parametrize(
    ("end", "noted", "late"),
    [
        ("inner0", "the router's {name} after ", "no link at the router's {name}, "),
        ("wire0", "the generator's port 0 after ", "no link at the generator's port 0, "),
    ],
)
def test_an_end_that_comes_late_is_awaited_and_named(tmp_path: Path, end: str, noted: str, late: str) -> None:
    with opened(tmp_path) as session:
        name = session.testbed.facts.sides[0].interface
        take_down(session, end)
        session.router.links.limit = 40.0
        # after the router was configured, also on a slow machine
        back = threading.Timer(8.0, lambda: run_in_router(session, "ip", "link", "set", end, "up"))
        back.start()
        session.router.configure()
        back.join()
        session.traffic.check_reachability()
        assert noted.format(name=name) in session.router.links.noted_words
        good = settled(session, "64b unidirectional ≥ 2 kpps")
        assert good.ruling is Ruling.PASS, good.message
        take_down(session, end)
        session.router.links.limit = 1.0
        with pytest.raises(TestbedError, match=late.format(name=name)):
            session.router.configure(links_moved=True)
