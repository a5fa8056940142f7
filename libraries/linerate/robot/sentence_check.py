"""Checks every sentence of a suite: when the testbed is opened, and in a dry run, which executes no library keyword."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from robot.api import TestSuite, logger
from robot.libraries.BuiltIn import BuiltIn, RobotNotRunningError

from ..errors import LinerateError, SentenceError
from ..session.plan import Plan
from ..sla.requirement import Requirement
from . import suite_sentences
from .shared import Shared
from .suite_sentences import KeywordCall


def check_sentences(
    steps: Iterable[KeywordCall], own: set[str], plan: Plan, is_keyword: Callable[[str], bool]
) -> tuple[list[str], list[Requirement]]:
    """What is wrong with the sentences among *steps*, with file and line, and what the others require.

    *own*: the suite's own keywords, which are no sentences.
    """
    problems, requirements = [], []
    for step in steps:
        if suite_sentences.plain(step.name) in own:
            continue
        problem = suite_sentences.malformed(step, plan.catalogue, is_keyword)
        try:
            requirement = None if problem else _requirement(step, plan)
        except SentenceError as error:
            problem = str(error)
        if problem:
            problems.append(f"{step.where}: {problem}")
        elif requirement is not None:
            requirements.append(requirement)
    return problems, requirements


def _requirement(step: KeywordCall, plan: Plan) -> Requirement | None:
    """The requirement that *step* judges; None: none, or not known before the run. Raises SentenceError."""
    text = suite_sentences.sentence(step)
    if text is None or step.needs_the_run():
        return None
    try:
        sentence = str(BuiltIn().replace_variables(text))
    except RobotNotRunningError:
        raise
    except Exception:  # a variable that does not exist yet: the sentence is checked when it runs
        logger.debug(f"not checked before the run: {text}")
        return None
    return plan.requirement(sentence)


class SuiteListener:
    """Robot listener: knows which tests of a suite were selected, and fails wrong sentences in a dry run."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._plan: Plan | None = None
        self._own: set[str] = set()
        self._problems: list[str] = []

    def start_suite(self, data: TestSuite, result: Any) -> None:
        """Remember the suite; in a dry run read its files and check what all its tests share."""
        self._shared.suite = data
        self._plan, self._problems = None, []
        if not BuiltIn().dry_run_active:
            return
        try:
            self._plan = self._read_plan(data)
        except LinerateError as error:
            self._problems = [str(error)]
        if self._plan is not None:
            self._own = suite_sentences.own_keywords(data)
            self._problems = self._wrong(suite_sentences.shared_steps(data), self._plan)

    def end_test(self, data: Any, result: Any) -> None:
        """In a dry run, fail a test whose sentences, or those of its suite, are wrong."""
        problems = list(self._problems)
        if self._plan is not None:
            problems += self._wrong(suite_sentences.steps_of(data), self._plan)
        if problems:
            result.status = "FAIL"
            result.message = "\n".join(filter(None, [result.message, *problems]))

    def _wrong(self, steps: Iterable[KeywordCall], plan: Plan) -> list[str]:
        # whether a keyword exists is Robot's own check
        return check_sentences(steps, self._own, plan, lambda name: True)[0]

    def _read_plan(self, suite: TestSuite | None) -> Plan | None:
        """What the nearest `Open Testbed For` says; None if no set-up calls it directly."""
        while suite is not None:
            if suite_sentences.plain(suite.setup.name or "").rpartition(".")[2] == "opentestbedfor":
                return self._plan_of(suite.setup.args)
            suite = suite.parent
        return None

    def _plan_of(self, arguments: Iterable[str]) -> Plan:
        names = ("platform", "software", "testbed", "goal")
        found: dict[str, Any] = {"software": None, "testbed": "${TESTBED}", "goal": "${GOAL}"}
        for place, argument in enumerate(arguments):
            name, equals, value = argument.partition("=")
            found |= {name: value} if equals and name in names else {names[place]: argument}
        read: dict[str, Any] = {name: value and BuiltIn().replace_variables(value) for name, value in found.items()}
        return Plan.read(self._shared.project, **read)
