"""The key 'lab' of a testbed, and pools of testbeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from lineproof.errors import ConfigError
from lineproof.testbed.files import read_testbed, read_testbed_or_pool
from lineproof.testbed.lab.settings import PowerCycleSettings
from lineproof.testbed.settings import PoolSettings
from support.paths import VARIABLES


def written(folder: Path, lines: str, kind: str = "simulated") -> Path:
    (folder / "bench.yaml").write_text(f"testbed: bench\nkind: {kind}\n{lines}\n", encoding="utf-8")
    return folder


def test_a_testbed_is_labgrids_place_of_its_name_by_default(tmp_path: Path) -> None:
    lab = read_testbed(written(tmp_path, "lab: {coordinator: lab.example.com}"), "bench").lab
    assert lab is not None
    assert (lab.coordinator, lab.wait, lab.power) == ("lab.example.com:20408", 0, None)
    assert lab.filters("bench") == {"name": "bench"}


@pytest.mark.parametrize(
    ("lines", "filters"),
    [("place: other", {"name": "other"}), ("tags: {speed: 10g, ports: 2}", {"speed": "10g", "ports": "2"})],
)
def test_or_it_names_a_place_or_tags(tmp_path: Path, lines: str, filters: dict[str, str]) -> None:
    lab = read_testbed(written(tmp_path, f"lab: {{coordinator: 'a:1', wait: 30 min, {lines}}}"), "bench").lab
    assert lab is not None and lab.wait == 1800
    assert lab.filters("bench") == filters


def test_power_is_switched_only_if_the_file_says_so(tmp_path: Path) -> None:
    for words, expected in (
        ("true", PowerCycleSettings()),
        ("{resource: plug, off: 5 s, boot: 2 min}", PowerCycleSettings(resource="plug", off=5.0, boot=120.0)),
        ("false", None),
    ):
        lab = read_testbed(written(tmp_path, f"lab: {{coordinator: 'a:1', power: {words}}}"), "bench").lab
        assert lab is not None and lab.power == expected


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("{place: x}", "coordinator"),
        ("{coordinator: 'a b'}", "is no address; expected HOST or HOST:PORT"),
        ("{coordinator: 'a:99999'}", "is no address"),
        ("{coordinator: -x}", "is no address|text"),
        ("{coordinator: a, place: -p}", "is no name of labgrid's"),
        ("{coordinator: a, place: x, tags: {kind: y}}", "has 'place' and 'tags'; expected one of them"),
        ("{coordinator: a, tags: {Kind: y}}", "is no tag of labgrid's"),
        ("{coordinator: a, tags: {kind: 'x=y'}}", "is no tag of labgrid's"),
        ("{coordinator: a, wait: soon}", "is not a time; expected for example '10 min'"),
        ("{coordinator: a, power: {resource: --help}}", "is no name of labgrid's"),
        ("{coordinator: a, power: {off: -1}}", "expected at least 0"),
        ("{coordinator: a, pdu: 1}", "pdu"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, words: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=rf"bench\.yaml:3: .*({problem})"):
        read_testbed(written(tmp_path, f"lab: {words}"), "bench")


def test_the_pool_that_comes_with_lineproof_is_pabots() -> None:
    pool = read_testbed_or_pool(VARIABLES / "testbeds", "pool")
    assert isinstance(pool, PoolSettings) and pool.lab is None and pool.wait == 7200


def test_a_pool_is_no_testbed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"bench\.yaml: is a pool of testbeds, of which a suite gets one"):
        read_testbed(written(tmp_path, "tags: [10g]", "pool"), "bench")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("lab: {coordinator: a}", "chosen by tags"),
        ("lab: {coordinator: a, place: x}", "chosen by tags"),
        ("lab: {coordinator: a, tags: {kind: x}, power: true}", "'power' is for a testbed"),
        ("lab: {coordinator: a, tags: {kind: x}}\nwait: 1 min", "with 'lab' expected within it"),
    ],
)
def test_a_wrong_pool_is_refused(tmp_path: Path, words: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_testbed_or_pool(written(tmp_path, words, "pool"), "bench")
