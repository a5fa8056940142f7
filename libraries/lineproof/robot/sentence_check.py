"""Checks every sentence of a suite: when the testbed is opened, and in a dry run, which executes no library keyword."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from robot.api import TestSuite, logger
from robot.errors import ExecutionFailed
from robot.libraries.BuiltIn import BuiltIn, RobotNotRunningError

from ..core.quantity import Requirement
from ..core.sentence import parse
from ..core.traffic.catalogue import Catalogue
from ..errors import LineproofError, SentenceError
from ..generators.abilities import Method
from ..generators.trex.profile_loader import TrexProfileLoader
from ..session.plan import Plan
from ..testbed.files import read_testbed_or_pool
from ..testbed.settings import PoolSettings
from . import suite_sentences
from .run_variables import check_run_variables
from .shared import NO_TESTBED, Shared
from .suite_sentences import KeywordCall

METHODS = {
    "rfc2544throughputof": Method.THROUGHPUT,
    "framelossrateof": Method.FRAME_LOSS,
    "rfc2544latencyof": Method.LATENCY,
    "backtobackof": Method.BACK_TO_BACK,
    "systemrecoveryof": Method.RECOVERY,
    "resettimeof": Method.RESET,
}
"""Keywords that need more of a generator than their traffic does -> what they do."""

_UNKNOWN_KEYWORD = re.compile(r"^No keyword with name '(.*?)' found", re.MULTILINE)


ReadSentence = Callable[[str], Requirement]
"""Parses a sentence. Raises SentenceError."""


def check_sentences(
    steps: Iterable[KeywordCall],
    own: set[str],
    catalogue: Catalogue,
    read: ReadSentence,
    is_keyword: Callable[[str], bool],
) -> tuple[list[str], list[Requirement]]:
    """Return what is wrong with the sentences among *steps*, with file and line, and what the others require.

    *own*: the suite's own keywords, which are no sentences.
    """
    problems, requirements = [], []
    for step in steps:
        if suite_sentences.plain(step.name) in own:
            continue
        problem = suite_sentences.malformed(step, catalogue, is_keyword)
        try:
            requirement = None if problem else _requirement(step, read)
        except SentenceError as error:
            problem = str(error)
        if problem:
            problems.append(f"{step.where}: {problem}")
        elif requirement is not None:
            requirements.append(requirement)
    return problems, requirements


def beyond_generator(plan: Plan, steps: Iterable[KeywordCall]) -> Iterator[str]:
    """Which of *steps* the testbed's generator cannot do, with file and line."""
    for step in steps:
        if method := METHODS.get(suite_sentences.plain(step.name).rpartition(".")[2]):
            try:
                plan.check_method(method)
            except SentenceError as error:
                yield f"{step.where}: {error}"


def misfit_words(plan: Plan, requirements: Iterable[Requirement]) -> list[str]:
    """A sentence for each address of the testbed's file that does not fit the traffic of *requirements*."""
    return list(map(plan.misfit_words, plan.misfits(requirements)))


def _requirement(step: KeywordCall, read: ReadSentence) -> Requirement | None:
    """The requirement that *step* judges; None: none, or not known before the run. Raises SentenceError."""
    text = suite_sentences.sentence(step)
    if text is None or step.needs_the_run():
        return None
    try:
        sentence = str(BuiltIn().replace_variables(text))
    except (RobotNotRunningError, ExecutionFailed):  # the latter: an interrupt
        raise
    except Exception:  # a variable that does not exist yet: the sentence is checked when it runs
        logger.debug(f"not checked before the run: {text}")
        return None
    return read(sentence)


class SuiteListener:
    """Robot listener: knows which tests of a suite were selected, and fails wrong sentences in a dry run."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._catalogue: Catalogue | None = None
        self._read: ReadSentence | None = None
        self._own: set[str] = set()
        self._problems: list[str] = []
        self._plan: Plan | None = None
        self._warned: set[str] = set()
        self._opens_testbed = True

    def start_suite(self, data: TestSuite, result: Any) -> None:
        """Remember the suite; in a dry run read its files and check what all its tests share."""
        self._shared.suite = data
        self._catalogue, self._problems, self._plan = None, [], None
        if not BuiltIn().dry_run_active:
            return
        self._own = suite_sentences.own_keywords(data)
        setups = [suite.setup for suite in _with_parents(data) if suite.has_setup]
        self._opens_testbed = bool(setups)  # one of another name may open it too
        opening = next((item for item in setups if _opens_testbed(item)), None)
        try:
            self._read_files(opening)
        except LineproofError as error:
            where = f"{opening.source}:{opening.lineno}: " if opening else ""
            self._problems = [f"{where}{error}"]
        self._problems += self._wrong(suite_sentences.shared_steps(data), set())

    def end_test(self, data: Any, result: Any) -> None:
        """In a dry run, fail a test whose sentences, or those of its suite, are wrong."""
        if not BuiltIn().dry_run_active:
            return
        steps, unknown = list(suite_sentences.steps_of(data)), set(_UNKNOWN_KEYWORD.findall(result.message))
        problems = [*self._problems, *self._wrong(steps, unknown)]
        if not self._opens_testbed and any(suite_sentences.sentence(step) for step in steps):
            problems.append(f"{data.source}: {NO_TESTBED}")
        if problems:
            lines = [line for line in result.message.splitlines() if not self._explained(line, steps, unknown)]
            result.status, result.message = "FAIL", "\n".join([*lines, *problems]).strip()

    def _read_files(self, opening: Any) -> None:
        """Read what `Open Testbed For` names, else the traffic words alone: sentences need them. Raises ConfigError."""
        check_run_variables()
        project = self._shared.project
        self._catalogue = catalogue = Catalogue.read(project.profiles, TrexProfileLoader(""))
        self._read = lambda sentence: parse(sentence, catalogue)
        if opening is not None:
            plan = self._plan_of(opening.args)
            if plan is not None:
                self._catalogue, self._read, self._plan = plan.catalogue, plan.requirement, plan

    def _wrong(self, steps: Iterable[KeywordCall], unknown: set[str]) -> list[str]:
        """*unknown*: names that are no keywords, as Robot reports."""
        if self._catalogue is None or self._read is None:
            return []
        steps = list(steps)
        problems, requirements = check_sentences(
            steps, self._own, self._catalogue, self._read, lambda name: name not in unknown
        )
        if self._plan is not None:
            problems += beyond_generator(self._plan, steps)
            for words in misfit_words(self._plan, requirements):
                if words not in self._warned:
                    self._warned.add(words)
                    logger.warn(words)
        return problems

    def _explained(self, line: str, steps: Iterable[KeywordCall], unknown: set[str]) -> bool:
        """Return whether Robot reports as an unknown keyword what is a malformed sentence."""
        found = _UNKNOWN_KEYWORD.search(line)
        return found is not None and bool(self._wrong((step for step in steps if step.name == found[1]), unknown))

    def _plan_of(self, arguments: Iterable[str]) -> Plan | None:
        """The plan; None for a pool: which testbed it will be is not known."""
        names = ("platform", "software", "testbed", "goal")
        found: dict[str, Any] = {"software": None, "testbed": "${TESTBED}", "goal": "${GOAL}"}
        for place, argument in enumerate(arguments):
            name, equals, value = argument.partition("=")
            found |= {name: value} if equals and name in names else {names[place]: argument}
        values = {name: value and BuiltIn().replace_variables(value) for name, value in found.items()}
        # a variable file may give a list; Robot makes it text when it calls the keyword
        read: dict[str, Any] = {name: None if value is None else str(value) for name, value in values.items()}
        if isinstance(read_testbed_or_pool(self._shared.project.testbeds, read["testbed"]), PoolSettings):
            return None
        return Plan.read(self._shared.project, **read)


def _with_parents(suite: TestSuite | None) -> Iterator[TestSuite]:
    while suite is not None:
        yield suite
        suite = suite.parent


def _opens_testbed(setup: Any) -> bool:
    return suite_sentences.plain(setup.name or "").rpartition(".")[2] == "opentestbedfor"
