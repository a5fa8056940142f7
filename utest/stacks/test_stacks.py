"""Stacks that are sampled on a router: outputs of real perf and pmcstat, and routers that have neither."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof import stacks
from lineproof.stacks import MOST_ROWS, flame_graph, sampled_stacks
from lineproof.system.command_line import ShellCommands
from lineproof.system.ssh_shell import Result, Shell
from support.fake_router import sample
from support.scripted_shells import broken


def test_unknown_frames_in_a_row_are_one() -> None:
    text = "a [000] \n\t1 f\n\t2 [unknown]\n\t3 [unknown]\n\t4 g\n\t4 g\n\t5 [unknown]\n\n"
    assert stacks.fold_perf(text)[0] == {"a;[unknown];g;g;[unknown];f": 1}


def test_a_name_of_perf_is_one_frame_whatever_is_in_it() -> None:
    # synthetic: names of threads and of C++ functions with the signs of folded stacks and of XML
    text = "tmux: ;server [003] \n\t  55aa Q<int, char>::f(x; y) const\n\n:-1 [011] ffff0 idle_loop\nswapper [011] \n\n"
    found, cpus = stacks.fold_perf(text)
    assert found == {"tmux: :server;Q<int, char>::f(x: y) const": 1, ":-1;idle_loop": 1, "swapper": 1} and cpus == 2


def test_samples_without_a_further_caller_stay() -> None:
    # synthetic, in the form of pmcstat_cgnode_print (FreeBSD's usr.sbin/pmcstat/pmcpl_callgraph.c)
    text = (
        "50.00%  [10]       f @ /boot/kernel/kernel\n 60.00%  [6]         g\n 10.00%  [1]         h @ /lib/libc.so.7\n"
    )
    assert stacks.fold_callgraph(text)[0] == {"f": 3, "g;f": 6, "h;f": 1}


def _answering(*answers: Result) -> tuple[Shell, list[str]]:
    asked: list[str] = []

    def shell(command: str, limit: float) -> Result:
        asked.append(command)
        return answers[min(len(asked), len(answers)) - 1]

    return shell, asked


def test_freebsd_is_sampled_through_a_pipe() -> None:
    graph = sample("freebsd/pmcstat-G.callgraph.apu2.txt")
    shell, asked = _answering(Result("", "", 127, 0.0), Result("", "", 0, 0.0), Result(graph, "", 0, 0.0))
    found = sampled_stacks(ShellCommands(shell, sudo=True), 2.0)
    assert found.why == "" and len(found.stacks) > 5
    assert asked[1] == "kldstat -q -m hwpmc" and "kldload" not in "".join(asked)
    assert asked[2] == (
        "sh -c 'sudo -n pmcstat -S unhalted-cycles -O - sleep 2 | sudo -n pmcstat -R - -z 127 -G - | head -c 8000000'"
    )


PERF = Result("perf version 6.1\n", "", 0, 0.0), Result("", "", 127, 0.0)


def test_a_refusal_is_given_in_its_own_words() -> None:
    refusal = "Error:\nAccess to performance monitoring and observability operations is limited.\n"
    shell, _ = _answering(*PERF, Result("", refusal, 0, 0.0))
    assert sampled_stacks(ShellCommands(shell), 2.0).why == "'perf record' gave no sample: " + " ".join(refusal.split())


def test_a_dropped_link_is_no_error() -> None:
    assert sampled_stacks(ShellCommands(broken), 2.0).why == "the link to the router dropped"


def test_a_sample_that_is_cut_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a [000] \n\t1 f\n\na [000] \n\t1 f\n\t2 ma"
    monkeypatch.setattr(stacks, "MOST_BYTES", len(text))
    shell, _ = _answering(*PERF, Result(text, "", 0, 0.0))
    assert sampled_stacks(ShellCommands(shell), 1.0).stacks == {"a;f": 1}


ROWS = st.sampled_from(
    [
        "sh [000] \n",
        "\tffff f+x\n",
        "\t ffff\n",
        "\n",
        "50.00%  [10]  f @ /k\n",
        " 100.0%  [9]  g\n",
        "  1.0%  [99]  h\n",
    ]
)


@given(st.lists(ROWS | st.text(max_size=20), max_size=30).map("".join))
def test_any_output_gives_samples_of_named_frames(text: str) -> None:
    for found, _ in (stacks.fold_perf(text), stacks.fold_callgraph(text)):
        assert all(samples > 0 for samples in found.values())
        assert all(len(frame) <= 120 for stack in found for frame in stack.split(";"))


def test_a_deep_stack_and_many_of_them_take_no_long_time() -> None:
    began = time.process_time()
    deep, _ = stacks.fold_perf("a [000] \n" + "\t1 f\n" * 100_000)
    stacks.fold_perf("a [0] " * 200_000 + "\n" + " " * 100_000)
    stacks.fold_callgraph(" " * 1_000_000 + "1.0%  [1]  f\n" + "1.0%  [1] " + " " * 1_000_000)
    assert [len(stack.split(";")) for stack in deep] == [128]
    assert time.process_time() - began < 20


# -- the flame graph


SVG = "{http://www.w3.org/2000/svg}"
STACKS = {"main;a;b": 30, "main;a": 50, "main;c": 20}


def drawn(stacks: Mapping[str, int], title: str = "title", cpus: int | None = 2, simulated: bool = False) -> str:
    return flame_graph(stacks, 2.0, cpus, 3e6, title, simulated)


def _boxes(svg: str) -> dict[str, tuple[float, float, float]]:
    """Tooltip -> left edge, top and width."""
    found = {}
    for group in ET.fromstring(svg.encode()).iter(f"{SVG}g"):
        title, box = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        assert title is not None and title.text is not None and box is not None
        found[title.text] = (float(box.get("x", "")), float(box.get("y", "")), float(box.get("width", "")))
    return found


def test_a_box_is_as_wide_as_its_share_upon_its_caller() -> None:
    boxes = _boxes(drawn(STACKS))
    assert list(map(str, sorted(boxes))) == [
        "a: 80 samples, 80.0 %",
        "all: 100 samples, 100.0 %",
        "b: 30 samples, 30.0 %",
        "c: 20 samples, 20.0 %",
        "main: 100 samples, 100.0 %",
    ]
    a, whole, b, c = (boxes[name] for name in sorted(boxes) if not name.startswith("main"))
    assert a[2] == pytest.approx(0.8 * whole[2], abs=1) and c[2] == pytest.approx(0.2 * whole[2], abs=1)
    assert b[0] == a[0] and c[0] == pytest.approx(a[0] + a[2], abs=1)
    assert whole[1] > a[1] > b[1] and c[1] == a[1]


def test_the_caption_says_what_was_sampled() -> None:
    svg = drawn(STACKS, "The router under load: 64b ≥ 3 Mpps", simulated=True)
    assert "2 s, 100 samples, 2 CPUs, load 3 Mpps" in svg
    assert "The router under load: 64b ≥ 3 Mpps" in svg and "SIMULATED" in svg
    unmarked = drawn(STACKS, cpus=None)
    assert "2 s, 100 samples, load" in unmarked and "SIMULATED" not in unmarked


def test_a_recursion_is_cut_at_a_height() -> None:
    boxes = _boxes(drawn({";".join(f"f{depth}" for depth in range(500)): 3}))
    assert len(boxes) == MOST_ROWS


@given(
    st.dictionaries(st.lists(st.text(max_size=8), min_size=1, max_size=6).map(";".join), st.integers(1, 10**12)).filter(
        bool
    ),
    st.text(max_size=200),
)
def test_every_mapping_is_one_picture(stacks: dict[str, int], words: str) -> None:
    boxes = _boxes(drawn(stacks, words, simulated=True))
    assert all(left >= 10 and left + width <= 1191 and width >= 0 for left, _, width in boxes.values())
