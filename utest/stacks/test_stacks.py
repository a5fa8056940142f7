"""Stacks that are sampled on a router: outputs of real perf and pmcstat, and routers that have neither."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof import stacks
from lineproof.stacks import flame_graph, sampled_stacks
from lineproof.system.command_line import ShellCommands
from lineproof.system.ssh_shell import Result, Shell
from support.scripted_shells import broken


def _answering(*answers: Result) -> tuple[Shell, list[str]]:
    asked: list[str] = []

    def shell(command: str, limit: float) -> Result:
        asked.append(command)
        return answers[min(len(asked), len(answers)) - 1]

    return shell, asked


PERF = Result("perf version 6.1\n", "", 0, 0.0), Result("", "", 127, 0.0)


def test_a_refusal_and_a_dropped_link_are_given_in_their_own_words() -> None:
    refusal = "Error:\nAccess to performance monitoring and observability operations is limited.\n"
    shell, _ = _answering(*PERF, Result("", refusal, 0, 0.0))
    assert sampled_stacks(ShellCommands(shell), 2.0).why == "'perf record' gave no sample: " + " ".join(refusal.split())
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


SVG = "{http://www.w3.org/2000/svg}"


@given(
    st.dictionaries(st.lists(st.text(max_size=8), min_size=1, max_size=6).map(";".join), st.integers(1, 10**12)).filter(
        bool
    ),
    st.text(max_size=200),
)
def test_every_mapping_is_one_picture(stacks: dict[str, int], words: str) -> None:
    picture = flame_graph(stacks, 2.0, 2, 3e6, words, True)
    for group in ET.fromstring(picture.encode()).iter(f"{SVG}g"):
        title, box = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        assert title is not None and title.text is not None and box is not None
        left, width = float(box.get("x", "")), float(box.get("width", ""))
        assert left >= 10 and left + width <= 1191 and width >= 0
