"""Kinds of generators: described or found by entry point, their keys in a testbed's file, and what they cannot do."""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
from collections.abc import Iterator
from functools import cache
from inspect import signature
from pathlib import Path
from typing import get_type_hints

import pytest

from lineproof.errors import ConfigError, SentenceError
from lineproof.evidence.inputs import input_files
from lineproof.generators.base import Generator, Method
from lineproof.generators.kinds import DEFAULT, generator_kind, known_kinds, refusal
from lineproof.generators.site import connect_trex
from lineproof.project import Project
from lineproof.session.plan import Plan
from lineproof.testbed.settings import HardwareSettings, NetnsSettings, read_testbed
from support.paths import ROOT

PROGRAMS = Project(ROOT).programs

OTHER = """
from typing import ClassVar
from lineproof.generators.base import Abilities
from lineproof.generators.site import GeneratorSettings

class Keys(GeneratorSettings):
    abilities: ClassVar[Abilities] = Abilities(frozenset({"bursts", "flows"}))
    slots: int
"""


@pytest.fixture
def other_distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution that another maker could publish, installed in a folder of its own."""
    name = "anotherbox_generator"
    (tmp_path / f"{name}.py").write_text(OTHER)
    info = tmp_path / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[lineproof.generators]\nanotherbox = {name}:Keys\nbroken = {name}:MISSING\nwrong = {name}:Abilities\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield
    sys.modules.pop(name, None)


def lab(folder: Path, generator: str, kind: str = "hardware") -> Path:
    router = "router: {address: 192.0.2.2, user: admin, key: id}\n" if kind == "hardware" else ""
    (folder / "lab.yaml").write_text(f"testbed: lab\nkind: {kind}\ngenerator:{generator}{router}")
    return folder


@pytest.mark.usefixtures("other_distribution")
def test_another_distribution_adds_its_own(tmp_path: Path) -> None:
    found = read_testbed(lab(tmp_path, "\n  type: anotherbox\n  slots: 3\n"), "lab")
    assert isinstance(found, HardwareSettings) and found.trex is None and not found.starts_generator
    assert found.generator.model_dump() == {"type": "anotherbox", "card": None, "switch": None, "slots": 3}
    assert refusal("trafgen", lambda able: able.lacks_of("bursts"), PROGRAMS).endswith("can: anotherbox or trex")


def test_a_programs_file_of_the_project_lies_over_ours(tmp_path: Path) -> None:
    text, testbeds = (PROGRAMS / "trafgen.yaml").read_text("utf-8"), tmp_path / "variables" / "testbeds"
    for folder in (testbeds, testbeds.parent / "programs"):
        folder.mkdir(parents=True)
    for name in ("trafgen", "faster"):
        (testbeds.parent / "programs" / f"{name}.yaml").write_text(text.replace("can: [mixes, ", "can: ["), "utf-8")
    lab(testbeds, " faster\n", "netns")
    plan = Plan.read(Project(tmp_path), "linux_router", "linux", "lab", "quick")
    assert "mixes" not in plan.abilities.can and "variables/programs/faster.yaml" in input_files(plan)
    assert "mixes" not in generator_kind("trafgen", Project(tmp_path).programs).abilities.can


@pytest.mark.parametrize(
    ("keys", "line", "words"),
    [
        ("anotherbox\n  slot: 3", 5, "unknown key 'generator.slot'; did you mean 'slots'"),
        ("anotherbox\n  slots: many", 5, "'generator.slots': expected a whole number"),
        ("anothrbox", 4, "'anothrbox'; did you mean 'anotherbox'? known: anotherbox,"),
        ("broken", 4, "(anotherbox_generator:MISSING of anotherbox_generator)"),
        ("wrong", 4, "is no GeneratorSettings"),
    ],
)
@pytest.mark.usefixtures("other_distribution")
def test_an_error_in_keys_of_another_distribution_is_located(tmp_path: Path, keys: str, line: int, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_testbed(lab(tmp_path, f"\n  type: {keys}\n"), "lab")
    assert str(caught.value).startswith(f"{tmp_path / 'lab.yaml'}:{line}: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("given", "kind"),
    [("trafgen", "trafgen"), ("{type: iperf3}", "iperf3"), ("trex", "trex"), ("{type: trex}", "trex")],
)
def test_namespaces_take_a_word_or_keys(tmp_path: Path, given: str, kind: str) -> None:
    found = read_testbed(lab(tmp_path, f" {given}\n", "netns"), "lab")
    assert isinstance(found, NetnsSettings) and found.generator_type == kind and found.sends_late_frames


@pytest.mark.parametrize("name", known_kinds(PROGRAMS))
def test_every_kind_makes_a_whole_generator(name: str) -> None:
    kind = generator_kind(name, PROGRAMS)
    made = get_type_hints(connect_trex if name == DEFAULT else kind.connect)["return"]
    assert made is not Generator, f"'connect' of '{name}' must name its class: -> MyGenerator"
    for method, asked in vars(Generator).items():
        needed = {"burst": "bursts", "step_down": "live"}.get(method)
        if not method.startswith("_") and (needed is None or needed in kind.abilities.can):
            own = getattr(made, method, asked)
            assert own is not asked, f"{made.__name__} has no '{method}'"
            if callable(asked):
                assert [*signature(own).parameters] == [*signature(asked).parameters], f"{made.__name__}.{method}"


@cache
def plan(testbed: str) -> Plan:
    return Plan.read(Project.find(ROOT), "linux_router", "linux", testbed, "quick")


def test_each_generator_that_a_refusal_names_takes_the_sentence() -> None:
    shapes = "64b", "imix", "66b ipv6", "64b vlan 1-flow", "64b 1-flow"
    asked = "≥ 1 kpps", "latency p99 ≤ 1 ms at 10 kpps", "recovers in ≤ 2 s"
    named = 0
    for words in (f"{shape} unidirectional {what}" for shape in shapes for what in asked):
        for testbed in ("netns-trafgen", "netns-iperf3"):
            with contextlib.suppress(SentenceError):
                plan(testbed).requirement(words)
                continue
            with pytest.raises(SentenceError, match="expected one that can: ") as caught:
                plan(testbed).requirement(words)
            (kinds_named,) = re.findall(r"one that can: (.*) \(testbed", str(caught.value))
            for kind in kinds_named.split(" or "):
                assert plan({"trex": "netns"}.get(kind, f"netns-{kind}")).requirement(words).sentence == words
                named += 1
    assert named


@pytest.mark.parametrize("method", [Method.BACK_TO_BACK, Method.THROUGHPUT])
def test_a_method_beyond_the_generator_is_refused(method: Method) -> None:
    with pytest.raises(SentenceError, match="generator 'trafgen'"):
        plan("netns-trafgen").check_method(method)
    plan("netns").check_method(method)


def test_ports_of_programs_are_in_use_by_host_and_namespace(tmp_path: Path) -> None:
    far = "{interface: ix1, router_mac: '02:00:00:00:00:02', address: 192.0.2.7, ssh: {user: root, key: id}}"
    keys = f"type: pkt-gen\n  ports: [{{interface: ix0, router_mac: '02:00:00:00:00:01'}}, {far}]"
    found = read_testbed(lab(tmp_path, f"\n  {keys}\n"), "lab")
    assert isinstance(found, HardwareSettings)
    assert found.generator.claimed == ("port ix0 on this machine", "port ix1 on 192.0.2.7:22")
