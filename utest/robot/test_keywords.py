"""Keywords: what they do with a verdict, with frames that came back, and with their arguments."""

from __future__ import annotations

import ipaddress
import json
import logging
import re
import shlex
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from robot.libdoc import libdoc

from lineproof.core.goal import read_goal
from lineproof.core.quantity import Reason
from lineproof.core.rule import Ruling
from lineproof.core.sentence import parse
from lineproof.core.traffic.ip_header import ipv4_checksum
from lineproof.core.trial import Tolerance, read_trial
from lineproof.core.verdict import Verdict
from lineproof.errors import ConfigError, Inconclusive, SlaFailure, TestbedError
from lineproof.generators.abilities import Method
from lineproof.project import Project
from lineproof.robot import acceptance
from lineproof.robot.characterisation import _deadline
from lineproof.robot.execution import DEFAULTS, _of_user
from lineproof.robot.run_variables import NAMES, _given, check_names, check_values, options
from lineproof.robot.sentence_check import METHODS
from lineproof.robot.shared import Shared
from lineproof.robot.suite_sentences import plain
from lineproof.robot.traffic_generator import FrameKeywords, GeneratorKeywords, frames_of
from lineproof.session.plan import Plan
from support.catalogue import CATALOGUE
from support.model_bench import PROJECT
from support.outcomes import outcome
from support.paths import ROOT


def test_a_plot_that_cannot_be_drawn_costs_no_verdict(monkeypatch: Any, caplog: pytest.LogCaptureFixture) -> None:
    requirement = parse("64b unidirectional ≥ 1 kpps", CATALOGUE)
    goal = read_goal(PROJECT.goals, "quick")
    trial = read_trial(1, outcome(), Tolerance())
    verdict = Verdict(requirement, goal, Ruling.PASS, Reason("lost nothing"), (trial,), 10e9, {})

    def broken(*_: Any, **__: Any) -> str:
        raise ZeroDivisionError("no such axis")

    monkeypatch.setattr(acceptance, "sentence_plot", broken)
    session, recorder = MagicMock(link_bps=10e9, simulated=True), MagicMock()
    session.traffic.reconnection.note = session.revival.note = ""
    session.testbed.lab = None
    shared = Shared(opened=[("suite", session)], recorder=recorder)
    with caplog.at_level(logging.INFO):
        acceptance.AcceptanceKeywords(shared).keep_evidence(verdict)
    recorder.keep_verdict.assert_called_once()
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert (
        "no plot of the trials: an error of Lineproof's own (lineproof/robot/acceptance.py, line "
        in warning.getMessage()
    )
    assert any("<table" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(("ruling", "error"), [(Ruling.FAIL, SlaFailure), (Ruling.INCONCLUSIVE, Inconclusive)])
def test_a_message_is_one_line_and_indented_details(ruling: Ruling, error: type[Exception]) -> None:
    requirement, goal = parse("64b unidirectional ≥ 1 kpps", CATALOGUE), read_goal(PROJECT.goals, "quick")
    verdict = Verdict(requirement, goal, ruling, Reason("lost 2 %", ("of 1 kpps",)), (), 10e9, {})
    with pytest.raises(error) as raised:
        acceptance.AcceptanceKeywords(Shared()).verdict_should_be_pass(verdict, "", "capacity: 900 pps")
    first, *details = str(raised.value).split("\n")
    assert first == f"{ruling.value}: 64b unidirectional ≥ 1 kpps: lost 2 %"
    assert details[0] == "  of 1 kpps" and details[-1] == "  capacity: 900 pps"
    assert all(line.startswith("  ") for line in details)


def test_a_generator_that_keeps_no_frames_is_inconclusive() -> None:
    plan = Plan.read(Project(ROOT), "linux_router", None, "netns-trafgen", "quick")
    shared: Any = Shared()
    shared.opened.append(("suite", SimpleNamespace(plan=plan)))
    with pytest.raises(Inconclusive) as raised:
        GeneratorKeywords(shared).capture_forwarded_frames("64b", 1000)
    words = str(raised.value)
    assert words.startswith("INCONCLUSIVE: a capture of '64b': the generator 'trafgen' keeps no received")


@pytest.mark.parametrize(("time", "traffic"), [(None, None), (timedelta(0), 0.0), (timedelta(minutes=2), 120.0)])
def test_a_deadline_of_nothing_is_a_deadline(time: timedelta | None, traffic: float | None) -> None:
    assert _deadline(time).traffic == traffic


def frame(source: str, destination: str, kind: str = "0800", ttl: int = 63) -> bytes:
    header = bytearray(bytes.fromhex("4500002e00000000") + bytes([ttl, 17, 0, 0]))
    header += ipaddress.IPv4Address(source).packed + ipaddress.IPv4Address(destination).packed
    header[10:12] = ipv4_checksum(bytes(header)).to_bytes(2, "big")
    return bytes(12) + bytes.fromhex(kind) + bytes(header) + bytes(26)


FORTH, BACK = frame("16.0.0.4", "48.0.0.4"), frame("48.0.0.254", "16.0.0.254")


def test_both_directions_of_the_profile_are_kept_and_nothing_else():
    others = [
        frame("16.0.0.4", "48.0.0.4", kind="86dd"),
        frame("16.0.0.4", "48.0.1.4"),
        frame("48.0.0.4", "48.0.0.5"),
        frame("10.0.0.1", "224.0.0.5"),
        bytes.fromhex("ffffffffffff0200000000010806") + bytes(28),
        FORTH[:30],
        b"",
    ]
    assert frames_of(CATALOGUE.profile(["64b"]), [others[0], FORTH, *others[1:], BACK]) == (FORTH, BACK)


def test_a_wrong_time_to_live_fails():
    library = FrameKeywords(Shared())
    library.time_to_live_should_be({0: (BACK,), 1: (FORTH,)}, 63)
    with pytest.raises(AssertionError, match="FAIL: port 1: time to live 64, expected 63"):
        library.time_to_live_should_be({0: (BACK,), 1: (frame("16.0.0.4", "48.0.0.4", ttl=64),)}, 63)


@pytest.mark.parametrize("frames", [{}, {0: (), 1: (FORTH,)}])
def test_a_port_without_frames_is_no_failure_of_the_router(frames: dict[int, tuple[bytes, ...]]):
    with pytest.raises(TestbedError, match="no frame was captured"):
        FrameKeywords(Shared()).time_to_live_should_be(frames, 63)


# -- the documentation of all keywords, as libdoc shows it


SOURCES: list[Path | str] = [*sorted((ROOT / "resources").glob("*.resource")), "lineproof.robot.Lineproof"]


def document(source: Path | str, folder: Path) -> dict[str, Any]:
    """libdoc's data, with documentation as HTML."""
    out = folder / "keywords.json"
    libdoc(str(source), str(out), quiet=True)
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def test_every_keyword_has_tags_and_an_example(tmp_path: Path) -> None:
    keywords = [item for source in SOURCES for item in document(source, tmp_path)["keywords"]]
    lacking = [item["name"] for item in keywords if not item["tags"] or "Example" not in item["doc"]]
    assert lacking == [] and len(keywords) > 40


def test_no_keyword_name_occurs_twice(tmp_path: Path) -> None:
    names = [item["name"] for source in SOURCES for item in document(source, tmp_path)["keywords"]]
    assert sorted(names) == sorted(set(names))


def test_every_method_that_a_generator_may_lack_has_its_keyword(tmp_path: Path) -> None:
    names = {plain(item["name"]) for source in SOURCES for item in document(source, tmp_path)["keywords"]}
    assert METHODS.keys() <= names and set(METHODS.values()) == set(Method)


# -- which words on Robot's command line are checked before any traffic, and which a run keeps as its command


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("CHARACTERISE", "xx", "'-v CHARACTERISE:xx': expected never, on failure or always"),
        ("GOAL", "", "'-v GOAL:' is empty; expected a value"),
        ("SEARCH_DEADLINE", "soon", "expected a time"),
        ("SEARCH_DEADLINE", "nan", "expected a time"),
        ("SEARCH_DEADLINE", "9" * 5000, "expected a time"),
        ("SEARCH_DEADLINE", [], "expected a time"),
        ("MARGIN", "always", "'-v MARGIN:always': expected on or off"),
        ("MARGIN_DEADLINE", 0, "expected a time"),
        ("SOAK", "all", "'-v SOAK:all': expected part or whole"),
        ("RESUME", "../x", "expected the name of a run's folder"),
        ("RESUME", "**/*", "expected the name of a run's folder"),
        ("CALIBRATIONS", "/nowhere/at/all", "(-v CALIBRATIONS:) does not exist"),
        ("CALIBRATIONS", "/etc/passwd", "(-v CALIBRATIONS:) is not a folder"),
        ("CALIBRATIONS", "a\0b", "(-v CALIBRATIONS:) does not exist"),
        ("CALIBRATIONS", "x" * 5000, "(-v CALIBRATIONS:) does not exist"),
        ("RESULTS", "/etc/passwd/runs", "/etc/passwd: is not a folder"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_expected(name: str, value: Any, says: str):
    with pytest.raises(ConfigError) as caught:
        check_values({name: value})
    assert says in str(caught.value)


def test_defaults_and_what_robot_takes_are_right(tmp_path: Path):
    check_values(dict.fromkeys(NAMES))
    check_values({"CHARACTERISE": "On_Failure", "SEARCH_DEADLINE": "5 min", "RESUME": "20261121T120000Z-1a2b3c"})
    check_values({"MARGIN": True, "MARGIN_DEADLINE": "20 s"})
    check_values({"MARGIN": "ON", "MARGIN_DEADLINE": None})
    check_values({"SEARCH_DEADLINE": 300, "CALIBRATIONS": str(tmp_path), "RESULTS": str(tmp_path / "new" / "one")})


@pytest.mark.parametrize(
    ("name", "near"), [("GAOL", "GOAL"), ("characterize", "CHARACTERISE"), ("RESULT", "RESULTS"), ("MARGINS", "MARGIN")]
)
def test_a_misspelt_name_is_refused(tmp_path: Path, name: str, near: str):
    with pytest.raises(ConfigError, match=f"did you mean '{near}'"):
        check_names([name], tmp_path)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("TESTBED=lab", "'-v TESTBED=lab': expected '-v TESTBED:lab'"),
        ("goal=a=b", "'-v goal=a=b': expected '-v goal:a=b'"),
        ("MY_TOKEN=secret", "'-v MY_TOKEN=…': expected '-v MY_TOKEN:…'"),
    ],
)
def test_an_equals_sign_for_the_colon_is_refused(tmp_path: Path, name: str, says: str):
    with pytest.raises(ConfigError) as caught:
        check_names([name], tmp_path)
    assert says in str(caught.value)


def test_other_names_are_the_suites_own(tmp_path: Path):
    check_names(["Test Bed", "goal", "MODEST", "x", "RATE"], tmp_path)
    (tmp_path / "suite.robot").write_text("*** Variables ***\n${Test Bed 2}    x\n")
    check_names(["TESTBED2"], tmp_path / "suite.robot")


def test_names_are_read_from_the_command_line():
    argv = "robot -v GOAL:x --variable A:b:c -vB:1 --variable=C:2 --variablefile d:e f.robot"
    assert list(_given(argv.split())) == ["GOAL", "A", "B", "C"]


ROBOTS = {"${EMPTY}": "", "${NONE}": "None"}


def test_names_and_defaults_are_those_of_the_resources() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "resources").glob("*.resource"))
    found = dict(re.findall(r"^\$\{([A-Z_]+)\} {2,}(\S.*)$", text, re.MULTILINE))
    assert found.keys() == set(NAMES)
    assert {name: ROBOTS.get(found[name], found[name]) for name in DEFAULTS} == DEFAULTS
    # what names the run itself, and the folder of results, is given by itself
    assert set(NAMES) - set(DEFAULTS) == {"RESUME", "RESULTS"}


@pytest.mark.parametrize("program", ["/usr/bin/robot", "robot/__main__.py"])
def test_the_selection_is_kept_and_no_variable_of_somebody_else(program: str) -> None:
    given = "-v GOAL:quick --variable=TOKEN:abc -vKEY:x -v A=b --test 'A B' -i fast tests"
    words = [program, *shlex.split(given)]
    assert list(_of_user(words)) == ["-t", "A B", "-i", "fast", "-v", "TOKEN:…", "-v", "KEY:…"]
    assert list(options(words, ("-d", "--outputdir"))) == []


def test_another_programs_options_are_not_robots() -> None:
    assert list(_of_user([str(Path("bin") / "pytest"), "-e", "x"])) == []
