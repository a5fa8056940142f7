"""Checks every sentence of a suite: when the testbed is opened, and in a dry run, which executes no library keyword."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, cast

from robot.api import TestSuite, logger
from robot.libraries.BuiltIn import BuiltIn

from ..core.quantity import Requirement
from ..core.sentence import parse
from ..core.traffic.catalogue import Catalogue
from ..errors import LineproofError, SentenceError
from ..files import place
from ..generators.base import Method
from ..generators.trex.profile_loader import TrexProfileLoader
from ..session.plan import Plan
from ..testbed.files import read_testbed_or_pool
from ..testbed.settings import PoolSettings
from . import suite_sentences
from .run_variables import check_run_variables
from .shared import NO_TESTBED, Shared, narrow
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

_VERDICT = re.compile(r"^(?:\d+\) )?(FAIL|INCONCLUSIVE):", re.MULTILINE)
"""How a failed sentence's message begins; Robot numbers several in one test."""


class SentenceCheck:
    """Checks sentences before the run. *plan*: the testbed's; None: the traffic words alone, of *catalogue*.

    *own*: the suite's own keywords, which are no sentences. ``requirements``: what the right sentences require.
    """

    def __init__(self, catalogue: Catalogue, plan: Plan | None, own: set[str]) -> None:
        self._catalogue, self._plan, self._own = catalogue, plan, own
        self._read = plan.requirement if plan else partial(parse, catalogue=catalogue)
        self.requirements: dict[KeywordCall, Requirement] = {}

    def problems(self, steps: Iterable[KeywordCall]) -> list[str]:
        """Return what is wrong with the sentences among *steps*, each with file and line."""
        return [f"{step.where}: {problem}" for step in steps for problem in self._problems(step)]

    def _problems(self, step: KeywordCall) -> Iterator[str]:
        name = suite_sentences.plain(step.name)
        if name in self._own:
            return
        try:
            if malformed := suite_sentences.malformed(step, self._catalogue, _is_keyword):
                yield malformed
            elif (sentence := suite_sentences.known_sentence(step)) is not None:
                self.requirements[step] = self._read(sentence)
            if self._plan is not None and (method := METHODS.get(name.rpartition(".")[2])):
                self._plan.check_method(method)
        except SentenceError as error:
            yield str(error)

    def misfits(self) -> list[str]:
        """Return a sentence for each address of the testbed's file that does not fit the traffic."""
        return [] if self._plan is None else [*map(self._plan.misfit_words, self._plan.misfits(self.required))]

    @property
    def required(self) -> list[Requirement]:
        """The requirements of the sentences, in their order."""
        return list(self.requirements.values())


def _is_keyword(name: str) -> bool:
    try:
        BuiltIn().keyword_should_exist(cast(Any, name))
    except AssertionError:
        return False
    return True


def place_of(test: Any) -> str:
    """Return where *test* is, which no other test has."""
    return place(test.source, test.lineno)


class SuiteListener:
    """Robot listener: knows which tests of a suite were selected, and fails those with wrong sentences.

    The keyword of a sentence ends with what its steps have to show: picture and table are there at the second click.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._check: SentenceCheck | None = None
        self._problems: list[str] = []
        self._warned: set[str] = set()
        self._opens_testbed = True

    def start_suite(self, data: TestSuite, result: Any) -> None:
        """Remember the suite; in a dry run read its files and check what all its tests share."""
        self._shared.suite = data
        self._check, self._problems = None, []
        if not BuiltIn().dry_run_active:
            return
        setups = [suite.setup for suite in _with_parents(data) if suite.has_setup]
        self._opens_testbed = bool(setups)  # one of another name may open it too
        opening = next((setup for setup in setups if _opens_testbed(setup)), None)
        try:
            check_run_variables()
            # sentences need the traffic words, also where what `Open Testbed For` names cannot be read
            catalogue = Catalogue.read(self._shared.project.profiles, TrexProfileLoader(""))
            own = suite_sentences.own_keywords(data)
            self._check = SentenceCheck(catalogue, None, own)
            if opening is not None and (plan := self._plan_of(opening.args)) is not None:
                self._check = SentenceCheck(plan.catalogue, plan, own)
        except LineproofError as error:
            where = f"{place_of(opening)}: " if opening else ""
            self._problems = [f"{where}{error}"]
        self._problems += self._wrong(suite_sentences.shared_steps(data))

    def start_test(self, data: Any, result: Any) -> None:
        """Let a test whose sentences are wrong fail at once: nothing of it is run."""
        problems = self._shared.wrong.get(place_of(data), [])
        if BuiltIn().dry_run_active:
            steps = list(suite_sentences.steps_of(data))
            problems = self._wrong(steps)
            if not self._opens_testbed and any(suite_sentences.sentence(step) for step in steps):
                problems.append(f"{data.source}: {NO_TESTBED}")
        if problems:
            data.error = "\n".join(problems)

    def end_test(self, data: Any, result: Any) -> None:
        """Tag a failed test with its verdicts; in a dry run, fail all tests of a suite that is wrong."""
        if problems := self._shared.wrong.pop(place_of(data), []):
            result.message = narrow("\n".join(problems))  # also after a set-up that failed because of them
        if self._problems:
            result.status, result.message = "FAIL", "\n".join([*self._problems, result.message]).strip()
        if result.failed:
            result.tags.add(f"verdict:{verdict.lower()}" for verdict in _VERDICT.findall(result.message))

    def end_user_keyword(self, data: Any, implementation: Any, result: Any) -> None:
        """Show what the steps of the sentence left to be shown."""
        shown, self._shared.shown = self._shared.shown, []
        for html in shown:
            logger.info(html, html=True)

    def _wrong(self, steps: Iterable[KeywordCall]) -> list[str]:
        if self._check is None:
            return []
        problems = self._check.problems(steps)
        for misfit in self._check.misfits():
            if misfit not in self._warned:
                self._warned.add(misfit)
                logger.warn(misfit)
        return problems

    def _plan_of(self, arguments: Sequence[str]) -> Plan | None:
        """The plan; None for a pool: which testbed it will be is not known."""
        names = ("platform", "software", "testbed", "goal")
        named = dict(argument.split("=", 1) for argument in arguments if argument.partition("=")[0] in names)
        placed = dict(
            zip(names, (argument for argument in arguments if argument.partition("=")[0] not in names), strict=False)
        )
        given = {"software": None, "testbed": "${TESTBED}", "goal": "${GOAL}", **placed, **named}
        # a variable file may give a list; Robot makes it text when it calls the keyword
        values = {name: value and BuiltIn().replace_variables(value) for name, value in given.items()}
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
