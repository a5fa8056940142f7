"""Inputs that are refused, each with its message: sentences, records, files of a project that are wrong in one place.

A row is a kind and its input. For a file the input is ``old → new``, a change of a right file of that kind, or what
stands at the ``…`` of it; for a record or a stream the fields that are wrong, as YAML; for a simulated router's shell a
command, with status and output. Control characters are written as their pictures, a line's end as ``␊``.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field, model_validator

from golden import net
from golden.scripted import LINK_BPS
from lineproof.ceilings import read_cards
from lineproof.config import Config, load_config, read_yaml
from lineproof.core.goal import read_goal
from lineproof.core.sentence import parse, parse_traffic
from lineproof.core.traffic.catalogue import Catalogue
from lineproof.errors import ConfigError, SentenceError, TestbedError
from lineproof.evidence.records import TrialRecord
from lineproof.generators.programs.description import Description
from lineproof.json_text import parse_json
from lineproof.platforms import read_platform
from lineproof.power import PowerSettings
from lineproof.project import Project
from lineproof.robot.shared import check_values
from lineproof.session.plan import Plan, read_checked_platform
from lineproof.simulation import parse_fault
from lineproof.studies.study import check_study
from lineproof.testbed.settings import read_testbed
from lineproof_bench.model.schema import router_model
from lineproof_bench.server.rpc import Params, RpcError
from lineproof_bench.server.streams import parse_stream
from support.ceilings import CATALOGUE
from support.evidence_builders import trial_record
from support.fake_router import simulated
from support.paths import ROOT, VARIABLES
from support.server_support import FakeBackend, stream
from support.trex_profile_support import Own


class Inner(Config):
    speed: Annotated[int, Field(ge=1)]
    least: int = 1

    @model_validator(mode="after")
    def _check_together(self) -> Inner:
        if self.speed < self.least:
            raise ValueError("speed must be at least least")
        return self


class Outer(Config):
    """A key of each form that a file may have."""

    name: str
    inner: Inner
    many: Mapping[str, Inner] = Field(default_factory=dict)
    ports: tuple[int, ...] = ()
    share: float = 0.5
    either: float | str = ""
    more: Annotated[float, Field(gt=0)] = 1.0
    few: Annotated[int, Field(le=8)] = 1
    pair: Annotated[tuple[str, ...], Field(min_length=2, max_length=3)] = ("a", "b")
    word: Annotated[str, Field(min_length=1, max_length=3, pattern="^[a-c]*$")] = "a"
    real: Annotated[bool, Field(strict=True)] = False


class Powered(Config):
    power: PowerSettings


TESTBED = """\
testbed: own
kind: hardware
generator:
  address: 192.0.2.10
router:
  address: 192.0.2.20
  user: admin
  key: keys/id
"""

STUDY = """\
study: own
title: A small study
platform: netgate6100
baseline: linux
measures:
  one flow: {forwards: 64b 1-flow unidirectional}
  cost: {cycles: 64b 1-flow unidirectional, at: 1 Mpps, tolerance: {percent: 10}}
variants:
  linux: {software: linux, measures: [one flow]}
  vpp: {software: vpp}
published:
  rows:
    one flow: {linux: 4.3, vpp: [33.6, 33.7]}
"""

PLATFORM = """\
platform: own
description: x
ports: {a: 10 Gbps, b: 10 Gbps}
software: {a: {shell: none, version: '1', interfaces: [x, y]}}
"""

CARD = """\
card: own
name: Box
drivers: [net_box]
limits:
  - rate: 12000000
    per: card
    source: {title: a page, url: "https://example.org/", says: it stops at 12 Mpps, seen: "2026-11-21"}
"""


def _catalogue(folder: Path) -> None:
    shutil.copytree(VARIABLES / "profiles", folder, dirs_exist_ok=True)
    Catalogue.read(folder)


def _of_project(kind: str, read: Callable[[Project, str], object]) -> Callable[[Path], object]:
    def reader(folder: Path) -> object:
        (folder / "variables").mkdir()
        shutil.copytree(folder, folder / "variables" / kind, ignore=shutil.ignore_patterns("variables"))
        return read(Project(folder), "own")

    return reader


def _fault(folder: Path) -> object:
    return parse_fault(**read_yaml(folder / "own.yaml")[0])


def _configured(folder: Path) -> object:
    box = read_platform(VARIABLES / "platforms", "freebsd_apu2")
    return router_model(box, "igb_tuned", configured=read_yaml(folder / "own.yaml")[0])


def _streams(folder: Path) -> None:
    Own(folder).profile((folder / "own.yaml").read_text(encoding="utf-8"), name="mine.yaml")


def _shipped(name: str) -> str:
    return (VARIABLES / name).read_text(encoding="utf-8")


def _loaded(model: type[Config]) -> Callable[[Path], object]:
    return lambda folder: load_config(folder / "own.yaml", model)


FILES: Mapping[str, tuple[str, Callable[[Path], object]]] = {
    "config": ("…", _loaded(Outer)),
    "power": ("power:\n  kind: command\n  accuracy: 1\n  run: x\n", _loaded(Powered)),
    "entry": ("entries:\n  - {about: ours, …}\n", _catalogue),
    "goal": (_shipped("goals/standard.yaml").replace("goal: standard", "goal: own"), lambda at: read_goal(at, "own")),
    "testbed": (TESTBED, lambda folder: read_testbed(folder, "own")),
    "netns": ("testbed: own\nkind: netns\ngenerator: trex\n", lambda folder: read_testbed(folder, "own")),
    "pool": ("testbed: own\nkind: pool\ntags: [10g]\n", lambda folder: read_testbed(folder, "own")),
    "platform": (PLATFORM, _of_project("platforms", read_checked_platform)),
    "card": (CARD, read_cards),
    "program": (_shipped("programs/trafgen.yaml"), _loaded(Description)),
    "study": (STUDY, _of_project("studies", check_study)),
    "fault": ("…", _fault),
    "configured": ("…", _configured),
    "streams": ("…", _streams),
}
"""By kind: a right file of it, and what reads it as ``own.yaml`` of a folder."""


def rows() -> Iterator[str]:
    """Yield each recorded input with its message. Sentences are on ports of 10 Gbit/s, or of a plan."""
    refusing: Mapping[str, Callable[[str], object]] = {
        "sentence": lambda words: parse(words, CATALOGUE).check(LINK_BPS),
        "traffic": lambda words: parse_traffic(words, CATALOGUE),
        "variable": lambda words: check_values(dict([words.split(":", 1)])),
        "json": lambda words: parse_json(_with_controls(words)),
        "record": _trial_record,
        "stream": _server_stream,
        "shell": _shell,
        **{kind: partial(_read_file, kind) for kind in FILES},
    }
    for row in net.recorded("messages")["refused.txt"].splitlines():
        if not row.startswith(" "):
            kind, _, words = row.partition(" ")
            yield f"{row}\n{indented(raised(partial(refusing.get(kind) or _plan(kind).requirement, words)))}\n"


def _plan(files: str) -> Plan:
    """Return the plan of platform, software, testbed and goal."""
    platform, software, testbed, goal = files.split("/")
    return Plan.read(Project(ROOT), platform, software, testbed, goal)


def _trial_record(words: str) -> object:
    """Read a trial's record with another value at a path of keys."""
    ((path, value),) = yaml.safe_load(f"{{{words}}}").items()
    *inside, last = path.split(".")
    data = place = trial_record().to_json()
    for name in inside:
        place = place[name]
    place[last] = value
    return TrialRecord.from_json(json.dumps(data).encode())


def _server_stream(words: str) -> object:
    """Give the embedded server a stream with other fields; ``frame``: its length."""
    fields = yaml.safe_load(f"{{{words}}}")
    frame = bytes(fields.pop("frame", 60))
    return parse_stream(1, Params(stream(frame=frame, **fields)), FakeBackend().ports[0])


def _shell(words: str) -> object:
    kind, _, line = words.partition(" ")
    output = simulated(kind)[0].run(_with_controls(line))
    raise TestbedError(f"status {output.status}: {output.stdout}{output.stderr}".replace("\r", "␍"))


def _with_controls(words: str) -> str:
    return re.sub("[␀-␟]", lambda picture: chr(ord(picture[0]) - 0x2400), words)


def _read_file(kind: str, words: str) -> object:
    """Read a file of *kind* that *words* change, in a folder of its own, whose name no error has."""
    right, read = FILES[kind]
    old, _, new = _with_controls(words).rpartition(" → ")
    if (old or "…") not in right:
        raise ValueError(f"'{old}' is not in a right file of this kind: {kind}")
    with tempfile.TemporaryDirectory() as name:
        Path(name, "own.yaml").write_text(right.replace(old or "…", new, 1), encoding="utf-8")
        try:
            return read(Path(name))
        except ConfigError as error:
            raise ConfigError(str(error).replace(f"{name}/", "")) from None


def raised(action: Callable[[], object]) -> str:
    """Return the message of the error that *action* raises."""
    try:
        return f"nothing is raised: {action()}"
    except (ConfigError, SentenceError, TestbedError, ValueError, RpcError) as error:
        return str(error)


def indented(text: str) -> str:
    """Return *text* with each line indented below the name of its row."""
    return "\n".join(f"    {line}" for line in text.splitlines() or ["(nothing)"])
