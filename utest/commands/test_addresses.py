"""Addresses in a testbed's file that no traffic uses: said by check, by doctor, and where frames do not come back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import robot_run
from support.command_line import lineproof
from support.served_bench import ServedBench, served

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBench]:
    with served(tmp_path_factory.mktemp("bench"), "--bare") as found:
        yield found


def lab(folder: Path, bench: ServedBench, *changes: tuple[str, str]) -> tuple[Path, Path]:
    """A project whose testbed ``lab`` is *bench*, with *changes*; and the testbed's file."""
    root = bench.project(folder)
    file = root / "variables" / "testbeds" / "lab.yaml"
    text = file.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")
    return root, file


def doctor(folder: Path, root: Path, *more: str) -> str:
    return lineproof(folder, "doctor", "lab", "--platform", "netgate6100", "--listen", "0", *more, cwd=root).stdout


def test_a_card_that_drops_what_the_router_sends_is_named_where_no_frame_comes_back(
    tmp_path: Path, bench: ServedBench
) -> None:
    root, _ = lab(tmp_path, bench, ("48.0.0.0/8", "20.0.0.0/8"), ("02:00:00:00:00:02", "02:aa:00:00:00:91"))
    printed = doctor(tmp_path, root, "--traffic")
    words = "the router sends to 02:aa:00:00:00:91, and the card is 02:00:00:00:00:02: it drops such frames"
    assert f"warning  port 1: {words}" in printed
    (traffic,) = [line for line in printed.splitlines() if line.startswith("wrong    traffic: ")]
    assert f"of port 1: {words}" in traffic and "of port 0" not in traffic


def test_a_run_names_swapped_interfaces_as_doctor_does(tmp_path: Path, bench: ServedBench) -> None:
    root, _ = lab(tmp_path, bench)
    platform = root / "variables" / "platforms" / "netgate6100.yaml"
    text = platform.read_text(encoding="utf-8")
    first, second = "TenGigabitEthernet3/0/0", "TenGigabitEthernet3/0/1"
    assert f"[{first}, {second}]" in text
    platform.unlink()
    platform.write_text(text.replace(f"[{first}, {second}]", f"[{second}, {first}]"), encoding="utf-8")
    said = [line for line in doctor(tmp_path, root).splitlines() if line.startswith("wrong    router interface ")]
    assert len(said) == 2
    suite = robot_run.write_suite(root, "64b unidirectional ≥ 1 kpps", setup="Open Testbed For    netgate6100")
    found = robot_run.run(tmp_path, suite, "-v", "TESTBED:lab", "-v", "GOAL:quick")
    words = " ".join(found.console.split())
    assert "nothing was judged: the generator's port" in words and "0 PASS" not in words, found.console
    assert all(" ".join(line.removeprefix("wrong    ").replace(": has", " has").split()) in words for line in said)
