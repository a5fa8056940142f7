"""Reads facts by commands of which any may be missing: what one does not answer is not read, and never fails a run.

``machine.yaml`` of a router's folder has the commands, and an expression for each fact.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from ..config import read_yaml
from ..core.router_facts import NicFacts, RouterFacts
from ..visible import shortened
from .commands import Answers
from .queries import filled

F = TypeVar("F", RouterFacts, NicFacts)
Fact = tuple[str, str]
"""A command, and an expression whose first group is the fact; of several matches each other one is a part of it."""


@functools.cache
def _described(folder: Path) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    described: Mapping[str, Mapping[str, Mapping[str, str]]] = read_yaml(folder / "machine.yaml")[0]
    return described


def facts_of(home: Path, part: str, **words: str) -> dict[str, Fact]:
    """Return the facts of a *part* of ``machine.yaml`` in *home*, with *words* in place of those in braces."""
    escaped = {name: re.escape(text) for name, text in words.items()}
    return {
        name: (filled(command, words), filled(pattern, escaped))
        for command, patterns in _described(home)[part].items()
        for name, pattern in patterns.items()
    }


def facts_as(kind: type[F], known: Mapping[str, str], **own: object) -> F:
    """Return facts of *kind*: those *known* by the names of its fields, and its *own*; the rest is ``other``.

    A name that begins with ``_`` is no fact by itself, and what is no number is none where one belongs.
    """
    types = {field.name: str(field.type) for field in fields(kind)}
    other = {name: value for name, value in known.items() if name not in types and not name.startswith("_")}
    named = {
        name: value
        for name, value in known.items()
        if name in types and ("str" in types[name] or re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value))
    }
    return TypeAdapter(kind).validate_python({**named, "other": other, **own})


def ask_facts(answers: Answers, facts: Mapping[str, Mapping[str, Fact]]) -> dict[str, dict[str, str]]:
    """Run the commands of *facts* of several cards, each once; return those that they show, by card and name."""
    output = answers.ask(*(command for own in facts.values() for command, _ in own.values()))
    return {card: picked(output, own) for card, own in facts.items()}


def picked(output: Mapping[str, str], facts: Mapping[str, Fact]) -> dict[str, str]:
    """Return those of *facts* that are in *output*, by name."""
    found: dict[str, str] = {}
    for name, (command, pattern) in facts.items():
        values = re.findall(pattern, output[command], re.MULTILINE)
        # of a fact that Python reads further the lines are kept
        if value := summarised(value.strip() if name.startswith("_") else " ".join(value.split()) for value in values):
            found[name] = value
    return found


def output_by_moment(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return both outputs of each command, by it and the moment."""
    moments = {"before": before, "after": after}
    return {f"{name} {moment}": text for moment, output in moments.items() for name, text in output.items() if text}


def matched(pattern: str, text: str) -> str | None:
    """The first group of *pattern* in *text*, without blanks around it; None if it is not there or empty."""
    found = re.search(pattern, text, re.MULTILINE)
    return (found[1].strip() or None) if found else None


def summarised(values: Iterable[str]) -> str | None:
    """The different *values* in order, with ``, `` between them; None without any."""
    return ", ".join(dict.fromkeys(value for value in values if value)) or None


def differences(facts: RouterFacts, version: str, workers: int | None, rx_queues: int | None) -> tuple[str, ...]:
    """Where *facts* differ from what a platform's file says, as sentences. What was not read differs from nothing."""
    found = []
    reported = summarised(text for text in (facts.version, facts.os, facts.kernel) if text)
    wanted = re.findall(r"\d+(?:\.\d+)+", version)
    if reported and any(not re.search(rf"(?<![\d.]){re.escape(each)}(?!\d)", reported) for each in wanted):
        found.append(f"'version': the platform's file says {shortened(version)}, the router reports {reported}")
    if workers is not None and facts.workers is not None and workers != facts.workers:
        found.append(f"'workers': the platform's file says {workers}, the router has {facts.workers}")
    for nic in facts.nics:
        if rx_queues is not None and nic.rx_queues is not None and rx_queues != nic.rx_queues:
            found.append(f"'rx_queues': the platform's file says {rx_queues}, {nic.interface} has {nic.rx_queues}")
    return tuple(found)
