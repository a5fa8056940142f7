"""Answers of a router that are cut, garbled or odd: the same figures, or one sentence that names command and router."""

from __future__ import annotations

import contextlib
import itertools
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.errors import TestbedError
from lineproof.routers import BUILT_IN, RouterKind, make_router
from lineproof.routers.base import Result, Shell
from lineproof.routers.described import Router
from support.described_router import with_examples
from support.fake_router import KINDS, SIDES, shell_of, simulated
from support.fuzz import TIMES

WHERE = "192.0.2.1:22"
RAW = re.compile(r"Traceback|\[Errno|\b[A-Z][a-z]\w*Error\b|\n")

Change = Callable[[str, random.Random], str]


def cut(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text))] if text else text


def garbled(text: str, chance: random.Random) -> str:
    found = list(text)
    for _ in range(chance.randint(1, 8)):
        if found:
            at = chance.randrange(len(found))
            found[at : at + chance.choice((1, 1, 5))] = chance.choice(
                ("\0", "²", "٣", "\x1b[1m", "9" * 5000, "-", "", "\n", "é", "NaN", "1e999", "\udc80", " ", ":")
            )
    return "".join(found)


def without_a_line(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    if lines:
        del lines[chance.randrange(len(lines))]
    return "".join(lines)


def repeated(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(lines * 2) if lines else "\n" * 1000


def odd(shell: Shell, change: Change, chance: random.Random) -> Shell:
    """*shell* with each eighth output changed."""
    changed = chance.randrange(8)
    asked = itertools.count()

    def answer(command: str, limit: float) -> Result:
        found = shell(command, limit)
        return replace(found, stdout=change(found.stdout, chance)) if next(asked) % 8 == changed else found

    return answer


def sentence(work: Callable[[], object]) -> None:
    """*work* succeeds, or raises one sentence."""
    try:
        work()
    except TestbedError as error:
        assert not RAW.search(str(error)), str(error)
        assert WHERE in str(error)
        assert len(str(error)) < 4500


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", [cut, garbled, without_a_line, repeated])
def test_whatever_a_router_answers_is_figures_or_a_sentence(kind: RouterKind, change: Change) -> None:
    for seed in range(25 * TIMES):
        chance = random.Random(seed)
        shell = odd(shell_of(simulated(kind)[0]), change, chance)
        router: Router = make_router(kind, shell, ("eth1", "eth2"), where=WHERE)
        configure, under_load = partial(router.configure, SIDES), partial(router.under_load, lambda: None)
        reading = (router.identify, router.facts, configure, router.clear, router.read, under_load, router.restore)
        for work in (*reading, router.link_states):
            sentence(work)


@given(st.text(max_size=200), st.sampled_from(sorted(BUILT_IN)))
def test_unrelated_text_has_no_counters(text: str, kind: RouterKind) -> None:
    router = make_router(kind, lambda command, limit: Result(text, "", 0, 0.0), ("eth1",))
    for key in router.description.commands.tables:
        with contextlib.suppress(TestbedError):
            assert not any(count for own in router.counts(key, {}, "eth1").values() for count in own.values())


@pytest.mark.parametrize("kind", ["vpp", "freebsd"])
def test_below_the_titles_of_a_table_there_are_only_rows(kind: RouterKind) -> None:
    table = with_examples(kind).commands.tables["links"]
    assert table.counts(table.example)
    for text in (f"{table.example}odd row\n", table.example.partition("\n")[2]):
        with pytest.raises(TestbedError, match="no row of it is"):
            table.counts(text)


def leaves(value: object, at: str = "") -> Iterator[tuple[str, object]]:
    """Each value that is known, with its place; of the entries of a list that is the list's."""
    if is_dataclass(value):
        value = {each.name: getattr(value, each.name) for each in fields(value) if each.name != "unread"}
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from leaves(part, f"{at}.{key}")
    elif isinstance(value, tuple):
        for part in value:
            yield from leaves(part, at)
    elif value not in (None, ""):
        yield at, value


def _within_a_line(text: str, chance: random.Random) -> str:
    found = cut(text, chance)
    return text if found.endswith("\n") or not found else found


def cut_answers(kind: RouterKind, times: int) -> Iterator[Router]:
    """Routers of whose answers some are cut at any place within a line."""
    whole = shell_of(simulated(kind)[0])
    for seed in range(times * TIMES):
        shell = odd(whole, _within_a_line, random.Random(seed))
        yield make_router(kind, shell, ("eth1", "eth2"), where=WHERE)


@pytest.mark.parametrize("kind", KINDS)
def test_facts_of_an_answer_that_is_cut_are_right_or_missing(kind: RouterKind) -> None:
    """But for its name and version, which are also from files that may lack a last line's end."""
    right = set(leaves(make_router(kind, shell_of(simulated(kind)[0]), ("eth1", "eth2")).facts()))
    for router in cut_answers(kind, 60):
        assert set(leaves(replace(router.facts(), os=None, version=None))) <= right


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_is_cut_gives_no_wrong_figure(kind: RouterKind) -> None:
    right = make_router(kind, shell_of(simulated(kind)[0]), ("eth1", "eth2")).read()
    for router in cut_answers(kind, 120):
        try:
            shown = router.read()
        except TestbedError as error:
            assert WHERE in str(error)
            assert "'" in str(error) or "/proc/" in str(error), str(error)
        else:
            assert replace(shown, raw=right.raw) == right
