"""A start with the host's own /etc/trex_cfg.yaml has the findings of one that names its interfaces."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.config import validate_config
from lineproof.routers.base import Result
from lineproof.system.login import Login
from lineproof.testbed.generator_host import read_generator_host
from lineproof.testbed.trex.own_config import with_own_config
from lineproof.testbed.trex.settings import TrexGeneratorSettings
from lineproof.testbed.trex.start_findings import StartPlan
from support.trex_host import shell_of, trex_host_server


def plan_of(text: str, status: int = 0) -> tuple[StartPlan, list[str]]:
    plan, problems = with_own_config(lambda command, limit: Result(text, "", status, 0.0), StartPlan("/opt/trex"))
    return plan, [found.text for found in problems]


def test_what_the_file_says_is_the_plan() -> None:
    text = """\
- port_limit: 2
  version: 2
  interfaces: [03:00.0, 0000:03:00.1, dummy, dummy]
  prefix: one
  limit_memory: 1024
  platform: {master_thread_id: 0, latency_thread_id: 1, dual_if: [{socket: 0, threads: [2, 3]}]}
"""
    plan, problems = plan_of(text)
    assert (plan.interfaces, plan.threads, plan.memory, plan.prefix, problems) == (
        ("03:00.0", "0000:03:00.1"),
        (0, 1, 2, 3),
        1024,
        "one",
        [],
    )


@pytest.mark.parametrize("text", ["", "- version: 2", "interfaces: 3", "[", "x" * 70000, "- interfaces: [[1]]"])
def test_what_is_no_configuration_is_said(text: str) -> None:
    plan, (problem,) = plan_of(text)
    assert plan == StartPlan("/opt/trex") and "/etc/trex_cfg.yaml is not understood: " in problem


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=300), st.integers(0, 2))
def test_no_file_is_an_exception(text: str, status: int) -> None:
    plan_of(text, status)
    plan_of(f"- interfaces: [a]\n  platform: {text}", status)


def test_a_file_that_is_not_there_is_said() -> None:
    _, (found,) = with_own_config(shell_of("no configuration"), StartPlan("/opt/trex"))
    assert "/etc/trex_cfg.yaml is not there" in found.text and "dpdk_setup_ports.py -i" in found.text and found.stops


@pytest.mark.slow
@pytest.mark.parametrize(
    ("habit", "words"),
    [
        ("in use", "ip addr flush dev enp3s0f0"),
        ("neighbours in linux", "--unbind-unused-ports"),
        ("no huge pages", "hugepages=2"),
        ("no configuration", "/etc/trex_cfg.yaml is not there"),
    ],
)
def test_start_true_has_the_findings_about_cards(habit: str, words: str, tmp_path: Path) -> None:
    with trex_host_server(tmp_path, habit) as host:
        data = {
            "address": "127.0.0.1",
            "trex_home": "/opt/trex/v3.08",
            "start": True,
            "ssh": {"user": "trex", "key": "k"},
        }
        settings_ = validate_config(data, TrexGeneratorSettings, Path("lab.yaml"), {})
        login = Login(
            "127.0.0.1", host.port, "trex", tmp_path / "trex_client", known_hosts_path=tmp_path / "trex_known_hosts"
        )
        found = read_generator_host(settings_, login)
    assert found is not None and not found.problem
    assert [finding.text for finding in found.findings if words in finding.text], found.findings
