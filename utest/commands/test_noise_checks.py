"""'lineproof doctor' listens while nothing is sent, and looks at flow control."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lineproof.commands.host_checks import filter_check, flow_control_check
from lineproof.generators.base import GeneratorPort
from support import robot_run
from support.command_line import lineproof

NOISY = """\
testbed: noisy
description: a bridge beside a ConnectX that Linux lets send pause frames
kind: simulated
nic: mlx5
faults:
  - {kind: foreign frames, start: 0, port: 1}
"""


@pytest.mark.slow
def test_what_comes_unasked_is_named_and_flow_control_with_its_remedy(tmp_path: Path) -> None:
    home = robot_run.project(tmp_path)
    (home / "variables" / "testbeds" / "noisy.yaml").write_text(NOISY)
    found = lineproof(tmp_path, "doctor", "noisy", "--platform", "netgate6100", "--listen", "20", cwd=home)
    assert found.returncode == 0, found.stdout + found.stderr
    shown = found.stdout
    assert "ok       noise: port 0: no frame came in 20 s without traffic" in shown
    # five or six hellos in 10 s, whenever the first comes
    assert re.search(r"warning  noise: port 1: spanning tree from 02:00:00:00:00:fe, every (1\.[6-9]|2)", shown), shown
    assert "a trial of 10 s may count 6 of them" in shown or "a trial of 10 s may count 7 of them" in shown
    assert "flow control is on (rx and tx); switch it off by 'ethtool -A DEV rx off tx off' on TRex's host" in shown


@pytest.mark.parametrize(
    ("driver", "mode", "remedy"),
    [
        ("net_ixgbe", "rx and tx", "in TRex's console: 'portattr -p 0 --fc none'"),
        ("net_mlx5", "rx", "by 'ethtool -A DEV rx off tx off' on TRex's host"),
        ("net_i40e", "tx", "at the other end of the cable: TRex cannot switch it with this driver"),
        ("net_bnxt", "rx", "before the card is bound to DPDK"),
        ("net_i40e", "off", ""),
        ("net_ice", None, ""),
    ],
)
def test_flow_control_has_a_remedy_for_each_driver(driver: str, mode: str | None, remedy: str) -> None:
    port = GeneratorPort(0, "02:00:00:00:00:01", 10e9, True, driver, flow_control=mode)
    found = [check.finding for check in flow_control_check(port)]
    assert len(found) == bool(remedy) and all(remedy in finding for finding in found)


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
    found = [check.finding for check in filter_check(port, addressed)]
    assert len(found) == dropped and all("'promiscuous: true'" in finding for finding in found)
