"""Finds the SLA sentences of a suite, wherever they are, before anything runs. No keyword library."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot.api import TestSuite
from robot.errors import VariableError
from robot.libraries.BuiltIn import BuiltIn
from robot.variables import VariableMatches

from ..core.sentence import EXAMPLES, is_sentence
from ..core.traffic.catalogue import Catalogue
from ..files import place
from ..visible import shortened

_CALLS = re.compile(
    r"(builtin\.)?(runkeywords?(andcontinueonfailure|andwarnonfailure|andreturn)?|runkeywordif(all|any|test|timeout).+"
    r"|repeatkeyword|waituntilkeywordsucceeds|(?P<conditional>runkeyword(andreturn)?(if|unless)))"
)
"""Keywords that call another, as :func:`plain`."""

_EXPECTS_FAILURE = re.compile(r"(builtin\.)?runkeywordand(expecterror|ignoreerror|returnstatus)")
"""Keywords whose sentences may fail: they are left out."""

_PREFIX = re.compile(r"^(?:given|when|then|and|but) (?=\S)", re.IGNORECASE)


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
    """Each call in one *test*: in its body, template, set-up, tear-down, and by keywords that call others."""
    return _block(test, frozenset())


def shared_steps(suite: TestSuite) -> Iterator[KeywordCall]:
    """Each call in the set-up, the tear-down and the own keywords of *suite*, which its tests share."""
    yield from _fixtures(suite, frozenset())
    for item in suite.resource.keywords:
        arguments = (plain(name) for name in item.args.argument_names)
        yield from _block(item, frozenset([*arguments, *_variables(item.name)]))


def own_keywords(suite: TestSuite) -> set[str]:
    """Names of the keywords that the suite's files define, as :func:`plain`."""
    found = {plain(item.name) for item in suite.resource.keywords}
    return found.union(*(own_keywords(child) for child in suite.suites))


def sentence(step: KeywordCall) -> str | None:
    """The sentence that *step* judges; None: none."""
    return without_prefix(step.name) if is_sentence(step.name) else None


def known_sentence(step: KeywordCall) -> str | None:
    """The sentence that *step* judges, with the values of its variables; None: none, or not known before the run."""
    text = sentence(step)
    if text is None or step.needs_the_run():
        return None
    try:
        return str(BuiltIn().replace_variables(text))
    except VariableError:  # one that does not exist yet: the sentence is checked when it runs
        return None


def expects_another_verdict(step: KeywordCall) -> bool:
    """Return whether a sentence's test passes with another verdict than PASS, as it says beside the sentence."""
    return bool(step.arguments) and all(argument.startswith("expect=") for argument in step.arguments)


def without_prefix(text: str) -> str:
    """*text* without `Given`, `When`, `Then`, `And` or `But`, which Robot allows before a keyword's name."""
    return _PREFIX.sub("", text)


def malformed(step: KeywordCall, catalogue: Catalogue, is_keyword: Callable[[str], bool]) -> str | None:
    """Why *step*, which looks like a sentence, is none to Robot. None: it is one, or does not look like one."""
    words = step.name.split()
    if not is_sentence(step.name) and (not words or not catalogue.is_word(words[0]) or is_keyword(step.name)):
        return None
    if step.arguments and not expects_another_verdict(step):
        if any(_variables(step.name)):  # a template with a wrong number of arguments: Robot reports it
            return None
        shown = shortened("  ".join([step.name, *step.arguments]))
        return f"'{shown}' has two spaces inside, which end a keyword's name in Robot; keep one between words"
    if is_sentence(step.name):
        return None
    wrong = re.search(r"[<>=≠]+", step.name)
    hint = f" ('{wrong[0]}' is no comparison here)" if wrong else ""
    shown = shortened(step.name)
    return f"'{shown}' looks like a sentence but compares nothing{hint}; expected ≥ or ≤, as in '{EXAMPLES[0]}'"


def _block(owner: Any, arguments: frozenset[str]) -> Iterator[KeywordCall]:
    later = arguments.union(*(_variables(text) for text in _set_by(owner.body)))
    yield from _fixtures(owner, later)
    yield from _body(owner.body, later)


def _fixtures(owner: Any, later: frozenset[str]) -> Iterator[KeywordCall]:
    if owner.has_setup:
        yield from _with_inner_calls(owner.setup, later)
    if owner.has_teardown:
        yield from _with_inner_calls(owner.teardown, later)


def _body(body: Iterable[Any], later: frozenset[str]) -> Iterator[KeywordCall]:
    for item in body:
        if hasattr(item, "body"):
            yield from _body(item.body, later)
        elif hasattr(item, "args"):
            yield from _with_inner_calls(item, later)


def _with_inner_calls(item: Any, later: frozenset[str]) -> Iterator[KeywordCall]:
    where = place(item.source, item.lineno)
    for name, arguments in _called(item.name or "", tuple(str(argument) for argument in item.args)):
        yield KeywordCall(where, name, arguments, later)


def _called(name: str, arguments: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The call itself, and the sentences among its arguments where it calls other keywords; a condition is none."""
    yield name, arguments
    if calls := _CALLS.fullmatch(plain(name)):
        before = ("ELSE IF" if calls["conditional"] else "", *arguments)
        for mark, argument in zip(before, arguments, strict=False):
            if _EXPECTS_FAILURE.fullmatch(plain(argument)):
                return
            if mark != "ELSE IF" and is_sentence(argument):
                yield argument, ()


def _set_by(body: Iterable[Any]) -> Iterator[str]:
    """Variables that the steps of *body* set: results, loops' and VAR's."""
    for item in body:
        given = getattr(item, "assign", None) or ()
        yield from (given,) if isinstance(given, str) else given
        if item.type == item.VAR:
            yield item.name
        if hasattr(item, "body"):
            yield from _set_by(item.body)


def _variables(text: str) -> Iterator[str]:
    """Plain names of the variables in *text*: ``rate`` of ``${Rate}``, ``${rate:pattern}`` and ``${rate.real}``."""
    for match in VariableMatches(text):
        yield plain(re.split(r"[:.]", match.base or "")[0])


def plain(name: str) -> str:
    """*name* as Robot compares names: without case, spaces and underscores."""
    return re.sub(r"[ _]", "", name).lower()


class SentenceListing:
    """Robot listener: writes every sentence of a dry run to a file, for programs that do not import Robot.

    ``robot --dryrun --listener lineproof.robot.suite_sentences.SentenceListing:FILE``: a line of JSON for each.

    ``test``, ``sentence`` with the values of its variables, ``where``; ``unknown``: it has a variable that is set
    during a run, so nobody knows it before. Sentences of a suite's own keywords count once, for the suite.
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
        text = sentence(step)
        if text is None or expects_another_verdict(step):
            return
        known = known_sentence(step)
        row = {"test": test, "sentence": known or text, "where": step.where, "unknown": known is None}
        with self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(row) + "\n")
