"""The SLA sentences of a suite: found wherever they are, and checked, before anything runs.

When the testbed is opened, and in a dry run, which executes no library keyword.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from robot.api import SuiteVisitor, TestSuite, logger
from robot.errors import DataError, VariableError
from robot.libraries.BuiltIn import BuiltIn
from robot.variables import VariableMatches

from ..core.quantity import Requirement
from ..core.rule import Ruling
from ..core.sentence import EXAMPLES, is_sentence, parse
from ..core.traffic.catalogue import Catalogue
from ..errors import LineproofError, SentenceError
from ..files import place
from ..generators.trex.profile_loader import TrexProfileLoader
from ..procedures.procedure import procedures
from ..session.plan import Plan
from ..testbed.settings import PoolSettings, read_testbed_or_pool
from ..visible import shortened
from .characterisation import check_arguments
from .shared import NO_TESTBED, Shared, check_run_variables, narrow

_CALLS = re.compile(
    r"(builtin\.)?(runkeywords?(andcontinueonfailure|andwarnonfailure|andreturn)?|runkeywordif(all|any|test|timeout).+"
    r"|repeatkeyword|waituntilkeywordsucceeds|(?P<conditional>runkeyword(andreturn)?(if|unless)))"
)
"""Keywords that call another, as :func:`plain`."""

_EXPECTS_FAILURE = re.compile(r"(builtin\.)?runkeywordand(expecterror|ignoreerror|returnstatus)")
"""Keywords whose sentences may fail: they are left out."""

_PREFIX = re.compile(r"^(?:given|when|then|and|but) (?=\S)", re.IGNORECASE)

EXPECT = "expect="
_EXPECTED = tuple(f"{EXPECT}{ruling.value}" for ruling in Ruling)
"""Arguments of a sentence: the verdict with which its test passes."""

_VERDICT = re.compile(r"^(?:\d+\) )?(FAIL|INCONCLUSIVE):", re.MULTILINE)
"""How a failed sentence's message begins; Robot numbers several in one test."""


@dataclass(frozen=True)
class KeywordCall:
    """A keyword's call: its place, name and arguments, and the variables that are set during the run (``later``)."""

    where: str
    name: str
    arguments: tuple[str, ...]
    later: frozenset[str]

    def needs_the_run(self) -> bool:
        """Return whether its text has a variable that is set during the run: an argument, a loop's, a result."""
        return not self.later.isdisjoint(_variables(self.text))

    @property
    def text(self) -> str:
        """Name and arguments in one line."""
        return " ".join([self.name, *self.arguments])


def steps_of(test: Any) -> Iterator[KeywordCall]:
    """Yield each call in *test*: body, template, set-up, tear-down, and by keywords that call others."""
    return _steps(test, test.body, frozenset())


def shared_steps(suite: TestSuite) -> Iterator[KeywordCall]:
    """Yield each call that the tests of *suite* share: in set-up, tear-down and own keywords."""
    yield from _steps(suite, None, frozenset())
    for keyword in suite.resource.keywords:
        arguments = (plain(name) for name in keyword.args.argument_names)
        yield from _steps(keyword, keyword.body, frozenset([*arguments, *_variables(keyword.name)]))


def own_keywords(suite: TestSuite) -> set[str]:
    """Names of the keywords that the suite's files define, as :func:`plain`."""
    names = {plain(keyword.name) for keyword in suite.resource.keywords}
    return names.union(*(own_keywords(child) for child in suite.suites))


def sentence(step: KeywordCall) -> str | None:
    """Return the sentence that *step* judges; None: none."""
    return without_prefix(step.name) if is_sentence(step.name) else None


def known_sentence(step: KeywordCall) -> str | None:
    """Return the sentence that *step* judges, with values for variables; None: none, or not known yet."""
    text = sentence(step)
    if text is None or step.needs_the_run():
        return None
    try:
        return str(BuiltIn().replace_variables(text))
    except VariableError:  # one that does not exist yet: the sentence is checked when it runs
        return None


def expects_another_verdict(step: KeywordCall) -> bool:
    """Return whether a sentence's test passes with another verdict than PASS, as it says beside the sentence."""
    return bool(step.arguments) and all(argument.startswith(EXPECT) for argument in step.arguments)


def without_prefix(text: str) -> str:
    """Return *text* without `Given`, `When`, `Then`, `And` or `But`, which Robot allows before a keyword's name."""
    return _PREFIX.sub("", text)


def malformed(step: KeywordCall, catalogue: Catalogue, is_keyword: Callable[[str], bool]) -> str | None:
    """Return why *step* looks like a sentence and is none to Robot; None: it is one, or does not."""
    parts = step.name.split()
    if not is_sentence(step.name) and (not parts or not catalogue.is_word(parts[0]) or is_keyword(step.name)):
        return None
    if step.arguments and not expects_another_verdict(step):
        if any(_variables(step.name)):  # a template with a wrong number of arguments: Robot reports it
            return None
        named = [text for text in step.arguments if re.match(r"\w+=", text)]
        keep = f"give '{named[0]}' to `Open Testbed For` instead" if named else "keep one between words"
        shown = shortened("  ".join([step.name, *step.arguments]))
        return f"'{shown}' has two spaces inside, which end a keyword's name in Robot; {keep}"
    if is_sentence(step.name):
        unknown = [text for text in step.arguments if text not in _EXPECTED and not any(_variables(text))]
        return f"'{shortened(unknown[0])}': expected one of {', '.join(_EXPECTED)}" if unknown else None
    wrong = re.search(r"[<>=≠]+", step.name)
    hint = f" ('{wrong[0]}' is no comparison here)" if wrong else ""
    shown = shortened(step.name)
    return f"'{shown}' looks like a sentence but compares nothing{hint}; expected ≥ or ≤, as in '{EXAMPLES[0]}'"


class _Calls(SuiteVisitor):  # type: ignore[misc]  # Robot gives it no type
    """Collects the keywords' calls that it visits, and the variables that are set: results, loops' and VAR's."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.set: set[str] = set()

    def start_body_item(self, item: Any) -> None:
        """Collect *item* if it is a call, and the variables that it sets."""
        given = getattr(item, "assign", None) or ()
        for text in (given,) if isinstance(given, str) else (*given, *([item.name] if item.type == item.VAR else [])):
            self.set.update(_variables(text))
        if hasattr(item, "args"):
            self.calls.append(item)


def _steps(owner: Any, body: Any, arguments: frozenset[str]) -> Iterator[KeywordCall]:
    """Yield the calls in *body*, set-up and tear-down of *owner*. *arguments*: variables that are set before."""
    calls = _Calls()
    for part in (owner.setup if owner.has_setup else None, body, owner.teardown if owner.has_teardown else None):
        if part is not None:
            part.visit(calls)
    for call in calls.calls:
        for name, values in _called(call.name or "", tuple(str(argument) for argument in call.args)):
            yield KeywordCall(place(call.source, call.lineno), name, values, arguments | calls.set)


def _called(name: str, arguments: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the call itself, and the sentences among the arguments of one that calls others; a condition is none."""
    yield name, arguments
    if calls := _CALLS.fullmatch(plain(name)):
        before = ("ELSE IF" if calls["conditional"] else "", *arguments)
        for mark, argument in zip(before, arguments, strict=False):
            if _EXPECTS_FAILURE.fullmatch(plain(argument)):
                return
            if mark != "ELSE IF" and is_sentence(argument):
                yield argument, ()


def _variables(text: str) -> Iterator[str]:
    """Plain names of the variables in *text*: ``rate`` of ``${Rate}``, ``${rate:pattern}`` and ``${rate.real}``."""
    for match in VariableMatches(text):
        yield plain(re.split(r"[:.]", match.base or "")[0])


def plain(name: str) -> str:
    """Return *name* as Robot compares names: without case, spaces and underscores."""
    return re.sub(r"[ _]", "", name).lower()


METHODS = {plain(procedure.keyword): procedure.needs for procedure in procedures() if procedure.needs}
"""Keywords that need more of a generator than their traffic does -> what they do."""


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
        name = plain(step.name)
        if name in self._own:
            return
        try:
            if problem := malformed(step, self._catalogue, _is_keyword):
                yield problem
            elif (known := known_sentence(step)) is not None:
                self.requirements[step] = self._read(known)
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
        self._out_of_bounds: list[str] = []
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
            own = own_keywords(data)
            self._check = SentenceCheck(catalogue, None, own)
            if opening is not None and (plan := self._plan_of(opening.args)) is not None:
                self._check = SentenceCheck(plan.catalogue, plan, own)
        except LineproofError as error:
            where = f"{place_of(opening)}: " if opening else ""
            self._problems = [f"{where}{error}"]
        self._problems += self._wrong(shared_steps(data))

    def start_test(self, data: Any, result: Any) -> None:
        """Let a test whose sentences are wrong fail at once: nothing of it is run."""
        problems = self._shared.wrong.get(place_of(data), [])
        if BuiltIn().dry_run_active:
            steps = list(steps_of(data))
            problems = self._wrong(steps)
            if not self._opens_testbed and any(sentence(step) for step in steps):
                problems.append(f"{data.source}: {NO_TESTBED}")
        if problems:
            data.error = "\n".join(problems)

    def start_library_keyword(self, data: Any, implementation: Any, result: Any) -> None:
        """Note in a dry run what is out of bounds in a procedure's arguments, as far as they are known."""
        procedure = next((known for known in procedures() if known.keyword == implementation.name), None)
        if procedure is None or not BuiltIn().dry_run_active:
            return
        # Robot itself says which arguments are missing or of a wrong type
        with contextlib.suppress(DataError, ValueError):
            values, named = implementation.resolve_arguments(data.args, data.named_args)
            arguments = dict(zip(implementation.args.positional, values, strict=False)) | dict(named)
            try:
                check_arguments(procedure, arguments)
            except SentenceError as error:
                self._out_of_bounds.append(f"{place_of(data)}: {error}")

    def end_test(self, data: Any, result: Any) -> None:
        """Tag a failed test with its verdicts, or note that it has none; in a dry run, fail all of a wrong suite."""
        if problems := self._shared.wrong.pop(place_of(data), []):
            result.message = narrow("\n".join(problems))  # also after a set-up that failed because of them
        if problems := [*self._problems, *self._out_of_bounds]:
            result.status, result.message = "FAIL", "\n".join([*problems, result.message]).strip()
        self._out_of_bounds = []
        if result.failed:
            verdicts = _VERDICT.findall(result.message)
            result.tags.add(f"verdict:{verdict.lower()}" for verdict in verdicts)
            if not verdicts:
                self._shared.unjudged.append(f"'{data.name}': {' '.join(result.message.split())}")

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
        """Return the plan; None for a pool: which testbed it will be is not known."""
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
    return plain(setup.name or "").rpartition(".")[2] == "opentestbedfor"


class SentenceListing:
    """Robot listener: writes every sentence of a dry run to a file, for programs that do not import Robot.

    ``robot --dryrun --listener lineproof.robot.sentences.SentenceListing:FILE``: a line of JSON for each.

    ``test``, ``sentence`` with the values of its variables, ``where``; ``unknown``: it has a variable that is set
    during a run, so nobody knows it before; ``expects_another``: its test passes with another verdict than PASS.
    Sentences of a suite's own keywords count once, for the suite.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def start_suite(self, data: TestSuite, result: Any) -> None:
        """List what all tests share."""
        for step in shared_steps(data):
            self._add(data.name, step)

    def start_test(self, data: Any, result: Any) -> None:
        """List the test's own."""
        for step in steps_of(data):
            self._add(data.name, step)

    def _add(self, test: str, step: KeywordCall) -> None:
        if (text := sentence(step)) is None:
            return
        known = known_sentence(step)
        row: dict[str, object] = {"test": test, "sentence": known or text, "where": step.where}
        row |= {"unknown": known is None, "expects_another": expects_another_verdict(step)}
        with self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(row) + "\n")
