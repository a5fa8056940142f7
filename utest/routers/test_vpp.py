"""Reading VPP: recorded outputs of a real one, and outputs of the simulated one."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.packet_cost import packet_costs, together
from lineproof.errors import TestbedError
from lineproof.routers import make_router
from lineproof.routers.vpp import parse_runtime
from lineproof.system.ssh_shell import Result, plain_text
from lineproof_bench.shells import vpp
from lineproof_bench.state import NodeState, RouterState, ThreadState
from support.fake_router import SIDES, sample, shell_of, simulated
from support.scripted_shells import broken


def test_a_process_with_pending_events_changes_no_figure() -> None:
    text = plain_text(sample("vpp/w1_polling_50k/show_runtime.txt"))
    pending = re.sub(r"(?m)^(\S+ +(?:event|any|time) wait .*)$", r"\1\n    events pending, ", text)
    assert parse_runtime(pending) == parse_runtime(text)


@pytest.mark.parametrize(
    ("command", "output", "refused"),
    [
        ("vppctl show bogus", sample("vpp/ssh/banner_race_show_bogus.txt"), "show: unknown input `bogus'"),
        ("sudo -n vppctl -s /run/vpp/cli.sock bogus", "unknown input `bogus'\r\n", "unknown input `bogus'"),
        ("vppctl sh int adr", "show interface: unknown input `adr'\n", "show interface: unknown input `adr'"),
        (
            "vppctl set interface state eth9 up",
            "set interface state: unknown interface `eth9 up'",
            "set interface state:",
        ),
        ("sh -c 'vppctl ip route add 1/8 via x'", "ip route: parse error: 'via x'\n", "ip route: parse error"),
        ("vppctl show version; vppctl clear x", "vpp v26.10\nclear: unknown input `x'\n", "clear: unknown"),
        ("vppctl ip route add 1.0.0.0/99 via drop", "Invalid prefix len: 99\r\n", "Invalid prefix len: 99"),
        ("vppctl show version", "vpp v26.10 built by root\n", ""),
        ("vppctl show interface", sample("vpp/w1_polling_50k/show_interface.txt"), ""),
        ("cat notes # show: unknown input", "show: unknown input `bogus'\n", ""),
    ],
)
def test_what_vpp_refuses_with_status_0_is_seen(command: str, output: str, refused: str) -> None:
    found = make_router("vpp", broken).refusal_in(command, output).partition("': ")[2]
    assert found.startswith(refused) and bool(found) == bool(refused)


NAMES = st.text("abcdefghijklmnop-0123456789/", min_size=1, max_size=40)
NODES = st.builds(
    NodeState,
    name=NAMES,
    state=st.sampled_from(["polling", "active", "interrupt wa"]),
    calls=st.integers(0, 10**15),
    vectors=st.integers(0, 10**15),
    clocks=st.floats(0, 1e18),
)


@given(
    st.lists(st.lists(NODES, max_size=8), min_size=1, max_size=4),
    st.sampled_from(["22.02", "v25.10", "v26.02-rc1", "v26.10"]),
)
def test_a_rendered_runtime_is_read_back(threads: list[list[NodeState]], version: str) -> None:
    rows = tuple(
        ThreadState("vpp_main" if i == 0 else f"vpp_wk_{i - 1}", i, (), tuple(n)) for i, n in enumerate(threads)
    )
    state = RouterState("vpp", version, "dut", 1.0, 2.5, 2.2e9, (), rows)
    blocks = parse_runtime(vpp.runtime(state))
    assert [block.thread for block in blocks] == [thread.name for thread in rows]
    for block, nodes in zip(blocks, threads, strict=True):
        shown = sorted((n for n in nodes if n.calls or n.vectors), key=lambda n: n.name)
        assert [(n.name, n.state, n.calls, n.vectors) for n in block.nodes] == [
            (n.name[:30].strip(), n.state, n.calls, n.vectors) for n in shown
        ]
        for read, node in zip(block.nodes, shown, strict=True):
            assert read.clocks == pytest.approx(node.clocks / (node.vectors or node.calls), rel=0.006)


def test_rendered_tables_have_the_columns_of_real_ones() -> None:
    node = NodeState("af-packet-input", "polling", 5684421, 253364, 1.74e4 * 253364)
    state = RouterState("vpp", "v26.10", "d", 1.0, 5.1, 2e9, (), (ThreadState("vpp_main", 0, (), (node,)),))
    lines = vpp.runtime(state).splitlines()
    real = sample("vpp/w1_polling_50k/show_runtime.txt").splitlines()
    assert lines[2] in real and lines[3] in real
    head = vpp.interfaces(state).splitlines()
    assert head[0] in sample("vpp/w1_polling_50k/show_interface.txt").splitlines()
    assert head[1].rstrip() in [row.rstrip() for row in sample("vpp/w1_polling_50k/show_interface.txt").splitlines()]
    assert vpp.errors(state).splitlines()[0] in sample("vpp/w1_polling_50k/show_errors.txt").splitlines()


def test_the_cost_of_two_directions_on_one_thread_counts_once() -> None:
    cost = together(packet_costs(make_router("vpp", shell_of(simulated("vpp")[0])).read_runtime()))
    assert cost is not None and (cost.packets, cost.vectors_per_call) == (1_000_000, 250)
    assert cost.without_input == pytest.approx(67.4 + 41.2 + (123.0 + 125.0) / 2, rel=0.01)
    assert cost.total == pytest.approx(cost.without_input + 79.5, rel=0.01)
    assert together(()) is None


def test_unknown_interfaces_are_named() -> None:
    with pytest.raises(TestbedError, match="no interface 'eth9'; it has eth1, eth2, local0"):
        make_router("vpp", shell_of(simulated("vpp")[0]), ("eth9",)).read()


BANNER = sample("vpp/ssh/banner_race_show_bogus.txt").split("show:")[0]


@pytest.mark.parametrize("banner", ["vpp# ", "DBGvpp# ", BANNER])
def test_a_banner_or_prompt_before_an_answer_is_no_part_of_it(banner: str) -> None:
    machine, model = simulated("vpp")
    whole = shell_of(machine)

    def shell(command: str, limit: float) -> Result:
        result = whole(command, limit)
        # one command, or the first of several
        return replace(result, stdout=banner + result.stdout)

    router = make_router("vpp", shell, ("eth1", "eth2"))
    router.configure(SIDES)
    router.clear()
    assert model.clears == 1 and len(model.state().configuration.routes) == 2
    assert router.read().uptime == 1234.5 and router.read_runtime().since_clear == 10
