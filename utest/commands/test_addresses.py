"""Addresses in a testbed's file that no traffic uses: said by check, by doctor, and where frames do not come back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import robot_run
from support.command_line import lineproof
from support.served_bench import ServedBench, served

pytestmark = pytest.mark.slow

EXCHANGED = (("16.0.0.0/8", "to be"), ("48.0.0.0/8", "16.0.0.0/8"), ("to be", "48.0.0.0/8"))


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


@pytest.mark.parametrize(
    ("changes", "lines", "words"),
    [
        ([("48.0.0.0/8", "20.0.0.0/8")], [9], "20.0.0.0/8 does not hold 48.0.0.4 to 48.0.0.254, where '64b' is sent"),
        (EXCHANGED, [9, 8], "16.0.0.0/8 does not hold 48.0.0.4 to 48.0.0.254, where '64b' is sent"),
    ],
)
def test_networks_that_the_traffic_does_not_use(
    tmp_path: Path, bench: ServedBench, changes: list[tuple[str, str]], lines: list[int], words: str
) -> None:
    root, file = lab(tmp_path, bench, *changes)
    for arguments in ((), (str(file),)):
        found = lineproof(tmp_path, "check", *arguments, cwd=root)
        said = [line for line in found.stdout.splitlines() if ".network'" in line]
        assert found.returncode == 1 and [line.split(": ")[0] for line in said] == [f"{file}:{n}" for n in lines]
        assert words in said[0]
    printed = doctor(tmp_path, root, "--traffic")
    assert f"wrong    addresses: {file}:9: 'sides.1.network': {words}" in printed
    (traffic,) = [line for line in printed.splitlines() if line.startswith("wrong    traffic: ")]
    assert f"; most likely: {file}:9: 'sides.1.network': {words}" in traffic and "; else check " in traffic


def test_a_card_that_drops_what_the_router_sends_is_named_where_no_frame_comes_back(
    tmp_path: Path, bench: ServedBench
) -> None:
    root, _ = lab(tmp_path, bench, ("48.0.0.0/8", "20.0.0.0/8"), ("02:00:00:00:00:02", "02:aa:00:00:00:91"))
    printed = doctor(tmp_path, root, "--traffic")
    words = "the router sends to 02:aa:00:00:00:91, and the card is 02:00:00:00:00:02: it drops such frames"
    assert f"warning  port 1: {words}" in printed
    (traffic,) = [line for line in printed.splitlines() if line.startswith("wrong    traffic: ")]
    assert f"of port 1: {words}" in traffic and "of port 0" not in traffic


def test_a_sentence_whose_addresses_are_elsewhere_is_a_warning(tmp_path: Path, bench: ServedBench) -> None:
    root, file = lab(tmp_path, bench, ("48.0.0.0/8", "48.0.0.0/24"))
    sentences = "".join(f"    64b {word} unidirectional ≥ 1 kpps\n" for word in ("1-flow", "256-networks"))
    suite = root / "mine.robot"
    suite.write_text(
        f"*** Settings ***\nResource    {robot_run.ROOT}/resources/acceptance.resource\n"
        f"Suite Setup    Open Testbed For    netgate6100\n*** Test Cases ***\nMine\n{sentences}",
        encoding="utf-8",
    )
    found = lineproof(tmp_path, "check", "-v", "TESTBED:lab", str(suite), cwd=root)
    assert found.returncode == 0, found.stdout
    (line,) = [line for line in found.stdout.splitlines() if ".network'" in line]
    assert line.startswith(
        f"warning: {file}:9: 'sides.1.network': 48.0.0.0/24 does not hold 48.0.0.1 to 48.255.0.1, where '64b"
        " 256-networks' is sent through this side; it holds some of them only"
    )


def test_a_next_hop_that_the_router_does_not_have(tmp_path: Path, bench: ServedBench) -> None:
    root, file = lab(tmp_path, bench, ("peer: 100.65.1.2", "next_hop: 100.65.1.9, peer: 100.65.1.2"))
    words = f"{file}:8: 'sides.0.next_hop': 100.65.1.9 is no address of this side; the router has 100.65.1.1 "
    checked = lineproof(tmp_path, "check", cwd=root)
    assert checked.returncode == 0 and f"warning: {words}" in checked.stdout
    printed = doctor(tmp_path, root, "--traffic")
    assert f"warning  addresses: {words}" in printed
    assert "02:00:00:00:01:01; port 0 asks 100.65.1.9 ('next_hop') where to send" in printed
    assert "02:00:00:00:01:02, to which port 1 sends" in printed
    assert "(asked by 100.65.1.2 on port 0; 'next_hop' of the testbed file)" in printed


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
    suite = root / "mine.robot"
    suite.write_text(
        f"*** Settings ***\nResource    {robot_run.ROOT}/resources/acceptance.resource\n"
        "Suite Setup    Open Testbed For    netgate6100\n"
        "*** Test Cases ***\nMine\n    64b unidirectional ≥ 1 kpps\n",
        encoding="utf-8",
    )
    found = robot_run.run(tmp_path, suite, "-v", "TESTBED:lab", "-v", "GOAL:quick")
    words = " ".join(found.console.split())
    assert "nothing was judged: the generator's port" in words and "0 PASS" not in words, found.console
    assert all(" ".join(line.removeprefix("wrong    ").replace(": has", " has").split()) in words for line in said)
