"""The file of a study, its suite, and its runs. Refused files are in the golden messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from unittest import mock
from unittest.mock import MagicMock

import pytest

from lineproof.commands.main import main
from lineproof.core.router_facts import NicFacts, RouterFacts
from lineproof.errors import ConfigError, TestbedError
from lineproof.platforms import Software, read_platform
from lineproof.project import Project
from lineproof.session.plan import Plan
from lineproof.session.session import Session
from lineproof.studies import runner
from lineproof.studies.measuring import check_router
from lineproof.studies.results import UNCHECKED
from lineproof.studies.runner import OtherRouter, StudyRun
from lineproof.studies.study import Study, steps_of
from lineproof.system.ssh_shell import Result
from support.model_bench import PROJECT
from support.paths import ROOT
from support.study_builders import SMALL, results_of, study_of, study_project, text


def test_the_flows_of_a_variant_take_the_place_of_the_rows_own(tmp_path: Path) -> None:
    study = study_of(tmp_path, SMALL.replace("{software: vpp}", "{software: vpp, flows: 10k-flows}"))
    assert study.traffic_of("one flow", "vpp") == "64b 10k-flows unidirectional"
    assert study.traffic_of("one flow", "linux") == "64b 1-flow unidirectional"


SUITES = ROOT / "tests" / "studies"


def test_every_platform_and_study_has_a_suite() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("*.robot")]
    for path in PROJECT.platforms.glob("*.yaml"):
        assert any(f"Open Testbed For    {path.stem}    " in text for text in texts), path.stem
    assert {path.stem for path in SUITES.glob("*.robot")} == {path.stem for path in PROJECT.studies.glob("*.yaml")}


MANY = Study.model_validate(
    {
        "study": "many",
        "title": "many",
        "platform": "netgate6100",
        "repeats": 4,
        "baseline": "b",
        "measures": {"long": {"ramp": "64b", "repeats": 1}, "short": {"forwards": "64b"}},
        "variants": {name: {} for name in "abcdef"},
    }
)


def test_a_block_has_each_variant_once_in_an_order_of_its_own_between_two_of_the_baseline() -> None:
    steps, orders = steps_of(MANY), set[tuple[str, ...]]()
    for block in range(1, 5):
        visits = list(dict.fromkeys(step.place for step in steps if step.block == block))
        assert visits[0] == (block, "first", "b") and visits[-1] == (block, "last", "b")
        orders.add(tuple(variant for *_, variant in visits[1:-1]))
    assert all(sorted(order) == ["a", "c", "d", "e", "f"] for order in orders) and len(orders) > 2
    assert steps != steps_of(MANY.model_copy(update={"seed": 1}))
    # a row is measured as often as it says
    assert len(steps) == len(set(steps)) == 6 + 4 * 7 and sum(step.row == "long" for step in steps) == 6


# -- what a study says before anything starts: what it will not measure, and what it cannot be measured on


COMMANDS = "commands: [{do: nft add table ip a, undo: nft delete table ip a}]"


def test_commands_that_a_simulated_router_does_not_know_are_said_before_the_start(tmp_path: Path) -> None:
    text = SMALL.replace("  linux: {software: linux}", f"  linux: {{software: linux, {COMMANDS}}}")
    run = StudyRun(study_project(tmp_path, text), "small", "simulated", "quick")
    _, line = run.foreword()
    assert line.startswith("not measured: linux: testbed 'simulated' is simulated") and "'configured'" in line
    # it is no excuse: the study's file can say it
    assert not run.gaps["linux", "one flow"].excused and ("vpp", "one flow") not in run.gaps
    study_project(tmp_path, text.replace("{software: vpp}", f"{{software: vpp, {COMMANDS}}}"))
    with pytest.raises(ConfigError, match="nothing can be measured: testbed 'simulated'"):
        StudyRun(Project(tmp_path), "small", "simulated", "quick")


def test_one_broken_study_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = study_project(tmp_path, SMALL)
    (made.root / "variables/studies/broken.yaml").write_text("study: broken\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["study", "list"]) == 2
    shown = capsys.readouterr()
    assert "small" in shown.out and "broken.yaml:1: the key 'title' is missing" in shown.err


SIMULATED = sorted(path.stem for path in (ROOT / "variables" / "studies").glob("freebsd_*.yaml"))


@pytest.fixture(scope="module", params=[*SIMULATED, "gowin_n305", "netgate6100"])
def shipped(request: pytest.FixtureRequest) -> StudyRun:
    """Provide each study that comes with Lineproof. Files that several variants need are read once."""
    with mock.patch.object(Plan, "read", cache(Plan.read)):
        return StudyRun(PROJECT, request.param, "simulated", "standard")


def test_a_variants_commands_configure_a_simulated_router_as_that_variant_says(shipped: StudyRun) -> None:
    """Also where others have the same commands, as with another number of flows."""
    for variant, plan in shipped.plans.items():
        own = shipped.study.variants[variant]
        known = [setup.configured for setup in plan.setups if setup.commands == own.commands]
        assert all(configured == own.configured for configured in known) and (known or not own.configured), variant


def router_of(run: StudyRun, variant: str) -> tuple[RouterFacts, dict[str, str]]:
    """Return the facts of a router that is what *variant* says, and its answers by command."""
    software, own = run.plans[variant].software, run.study.variants[variant]
    cards = tuple(NicFacts(name, rx_queues=software.rx_queues) for name in software.interfaces[:2])
    expected = run.study.facts_of(variant).items()
    told = {name: f"the {value} of a maker" if isinstance(value, str) else f"{value:g}" for name, value in expected}
    # a text that the expression finds
    answers = {line: pattern.pattern.replace(r"\s+", "  ").lstrip("^") for line, pattern in own.settings.items()}
    return RouterFacts(version=software.version, workers=software.workers, nics=cards, other=told), answers


def shown(
    software: Software, facts: RouterFacts, answers: Mapping[str, str | Result], simulated: bool = False
) -> Session:
    """Return a session with a router of *facts* that gives *answers*, and should be as *software*."""
    known = {line: said if isinstance(said, Result) else Result(said, "", 0, 0.0) for line, said in answers.items()}
    router = SimpleNamespace(facts=facts, shell=lambda line, limit: known[line])
    login = SimpleNamespace(facts=SimpleNamespace(router=SimpleNamespace(sudo=False)))
    plan = SimpleNamespace(software=software)
    return cast(Session, SimpleNamespace(simulated=simulated, router=router, testbed=login, plan=plan))


def said_of(run: StudyRun, variant: str, facts: RouterFacts, answers: Mapping[str, str]) -> list[str]:
    """Return the message about a router with *facts* that gives *answers*, before it is measured as *variant*."""
    software = run.plans[variant].software
    facts = facts.beside(software.version, software.workers, software.rx_queues)
    differs, unchecked = check_router(shown(software, facts, answers), run.study, variant)
    assert not {*answers, *facts.other} & {*unchecked}
    return differs


def test_a_router_that_differs_in_any_fact_of_its_variant_is_not_measured(shipped: StudyRun) -> None:
    for variant in shipped.plans:
        facts, answers = router_of(shipped, variant)
        assert said_of(shipped, variant, facts, answers) == []
        others = [
            replace(facts, other={**facts.other, name: other}) for name in facts.other for other in ("another", "")
        ]
        others += [replace(facts, version="9.9")] if re.search(r"\d\.\d", facts.version or "") else []
        others += [replace(facts, workers=facts.workers + 1)] if facts.workers else []
        if facts.nics[0].rx_queues:
            others.append(replace(facts, nics=(replace(facts.nics[0], rx_queues=facts.nics[0].rx_queues + 1),)))
        assert len(others) >= 3 and all(len(said_of(shipped, variant, other, answers)) == 1 for other in others)
        for line in answers:
            (said,) = said_of(shipped, variant, facts, {**answers, line: "command not found"})
            assert said.startswith(f"'{line}' has no ") and "command not found" in said


def test_a_simulated_router_is_checked_for_what_it_answers_and_the_rest_is_said(tmp_path: Path) -> None:
    keys = "facts: {workers: 4, cpu: C3558, MHz: 2200}, settings: {uname: BSD, sysctl a: '1', lspci: X, lscpu: Xeon}"
    study = study_of(tmp_path, SMALL.replace("{software: linux}", f"{{software: linux, {keys}}}"))
    model = "SIMULATED by a forwarding model"
    answers: dict[str, str | Result] = {
        "uname": "FreeBSD",
        "sysctl a": "a = 0",
        "lspci": Result("", "not found", 127, 0.0),
        "lscpu": model,
    }
    software = read_platform(PROJECT.platforms, "netgate6100").software["linux"].model_copy(update={"rx_queues": 2})
    session = shown(software, RouterFacts(version="6.8", workers=3, cpu=model), answers, simulated=True)
    differs, unchecked = check_router(session, study, "linux")
    assert [said.partition(" ")[0] for said in differs] == ["'workers':", "'sysctl"]
    assert set(unchecked) == {"receive queues", "cpu", "MHz", "lspci", "lscpu"}
    results = results_of(study, [])
    extra = {UNCHECKED: {"linux": unchecked, "vpp": {"cpu": unchecked["cpu"]}}}
    shown_text = text(replace(results, environment=replace(results.environment, extra=extra)))
    assert "Not checked: 'cpu' of all: " in shown_text and "Not checked: 'lspci' of linux: " in shown_text


def test_a_router_is_made_another_one_by_hand_as_seldom_as_can_be() -> None:
    """All blocks on one card before the next, though the blocks of a simulated one mix them."""
    run = StudyRun(Project(ROOT), "gowin_n305", "lab-example", "standard")
    made = [run.made_by_hand(step.variant) for step in run.steps]
    assert sorted(run.steps, key=str) == sorted(steps_of(run.study), key=str)
    assert sum(one != other for one, other in pairwise(made)) == len(set(made)) - 1 == 5
    cards = [run.study.variants[step.variant].by_hand for step in run.steps]
    assert sum(one != other for one, other in pairwise(cards)) == 1
    assert len(list(run.foreword())) == 1 + 6
    simulated = StudyRun(Project(ROOT), "gowin_n305", "simulated", "standard")
    assert simulated.steps == list(steps_of(run.study)) and len(list(simulated.foreword())) == 1


TUNABLE = """\
    commands: [{do: echo a=1 >> loader.conf, undo: sed -i /a=1/d loader.conf}]
    configured: {}
    restart: reboot
"""


@pytest.mark.slow
def test_what_holds_from_a_restart_on_is_set_and_undone_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = small(tmp_path, SMALL.replace("  linux: {software: linux}", f"  linux:\n{TUNABLE}"))
    steps, run.steps = run.steps, []
    run.run(tmp_path / "results")
    monkeypatch.setattr(runner, "check_router", lambda *_: ([], {}))
    session = MagicMock(simulated=False)
    session.router.restarts = 0
    for variant in ("vpp", "linux", "vpp", "linux"):
        run._session, run._key = session, run._session_key(variant)
        run._session_of(next(step for step in steps if step.variant == variant))
    monkeypatch.setattr(run, "_closed", lambda session: None)
    run._close_session()
    calls = [name for name, *_ in session.router.mock_calls if name in ("driver.apply", "restart", "driver.withdraw")]
    assert calls == 2 * ["driver.apply", "restart", "driver.apply", "driver.withdraw", "restart"]


def small(folder: Path, text: str = SMALL) -> StudyRun:
    return StudyRun(study_project(folder, text), "small", "simulated", "quick")


@pytest.mark.slow
@pytest.mark.parametrize("error", [TestbedError("no port 0"), TimeoutError("no answer"), OtherRouter("another one")])
def test_an_error_that_ends_a_run_is_not_its_own_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Robot follows causes to their end when it shows an error: in a circle it finds none, and writes no output."""

    def refuse(*_: object, **__: object) -> Session:
        raise error

    monkeypatch.setattr(Session, "start", refuse)
    with pytest.raises(TestbedError) as raised:
        small(tmp_path).run(tmp_path / "results")
    assert str(error) in str(raised.value) and raised.value.__cause__ is not raised.value
