"""The key 'lab' of a testbed, and pools of testbeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineproof.errors import ConfigError
from lineproof.testbed.files import read_testbed, read_testbed_or_pool
from lineproof.testbed.lab.place import LabSettings, PowerCycleSettings


def lab_of(folder: Path, text: str) -> LabSettings | None:
    (folder / "bench.yaml").write_text(f"testbed: bench\nkind: simulated\nlab: {text}\n", encoding="utf-8")
    return read_testbed(folder, "bench").lab


@pytest.mark.parametrize(
    ("text", "coordinator", "filters", "power"),
    [
        ("{coordinator: a.example}", "a.example:20408", {"name": "bench"}, None),
        ("{coordinator: 'a:1', place: other, power: true}", "a:1", {"name": "other"}, PowerCycleSettings()),
        ("{coordinator: 'a:1', tags: {speed: 10g, ports: 2}}", "a:1", {"speed": "10g", "ports": "2"}, None),
        ("{coordinator: 'a:1', power: {off: 5 s}}", "a:1", {"name": "bench"}, PowerCycleSettings(off=5.0)),
    ],
)
def test_what_is_asked_of_labgrid(
    tmp_path: Path, text: str, coordinator: str, filters: dict[str, str], power: PowerCycleSettings | None
) -> None:
    lab = lab_of(tmp_path, text)
    assert lab is not None
    assert (lab.coordinator, lab.filters("bench"), lab.power) == (coordinator, filters, power)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{coordinator: 'a:99999'}", "is no address"),
        ("{coordinator: a, place: -p}", "is no name of labgrid's"),
        ("{coordinator: a, place: x, tags: {kind: y}}", "has 'place' and 'tags'; expected one of them"),
        ("{coordinator: a, tags: {Kind: y}}", "is no tag of labgrid's"),
        ("{coordinator: a, tags: {kind: 'x=y'}}", "is no value of a tag"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=rf"bench\.yaml:3: .*({problem})"):
        lab_of(tmp_path, text)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("lab: {coordinator: a}", "chosen by tags"),
        ("lab: {coordinator: a, tags: {kind: x}, power: true}", "'power' is for a testbed"),
        ("lab: {coordinator: a, tags: {kind: x}}\nwait: 1 min", "with 'lab' expected within it"),
    ],
)
def test_a_wrong_pool_is_refused(tmp_path: Path, lines: str, problem: str) -> None:
    (tmp_path / "bench.yaml").write_text(f"testbed: bench\nkind: pool\n{lines}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=problem):
        read_testbed_or_pool(tmp_path, "bench")


def test_a_pool_is_no_testbed(tmp_path: Path) -> None:
    (tmp_path / "bench.yaml").write_text("testbed: bench\nkind: pool\ntags: [10g]\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"bench\.yaml: is a pool of testbeds, of which a suite gets one"):
        read_testbed(tmp_path, "bench")
