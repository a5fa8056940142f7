"""Stacks that are sampled on a router: outputs of real perf and pmcstat, and routers that have neither."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof import stacks
from lineproof.routers.base import Result, Shell
from lineproof.routers.shell_commands import ShellCommands
from lineproof.stacks import sampled_stacks
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


def _perf_missing() -> str:
    if not shutil.which("perf"):
        return "there is no perf (Debian's linux-perf)"
    return "" if os.geteuid() == 0 else "perf samples all processors as root only"


@pytest.mark.slow
@pytest.mark.skipif(_perf_missing() != "", reason=_perf_missing())
def test_this_machine_is_sampled_and_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    children: list[int] = []

    def shell(command: str, limit: float) -> Result:
        began = time.monotonic()
        with subprocess.Popen(command, shell=True, text=True, stdout=-1, stderr=-1, start_new_session=True) as process:
            children.append(process.pid)
            out, err = process.communicate(timeout=limit)
        return Result(out, err, process.returncode, time.monotonic() - began)

    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    try:
        found = sampled_stacks(ShellCommands(shell), 1.0)
    finally:
        busy.kill()
        busy.wait()
    assert found.why == ""
    assert found.cpus is not None and 1 <= found.cpus <= (os.cpu_count() or 1)
    assert any(stack == "sh" or stack.startswith("sh;") for stack in found.stacks)
    assert list(tmp_path.iterdir()) == []
    for group in children:
        with pytest.raises(ProcessLookupError):
            os.killpg(group, 0)


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
