"""What a described router's readings say: hints where nothing is read, and load and temperature under load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lineproof.errors import TestbedError
from lineproof.evidence.under_load_record import under_load_fragment
from lineproof.routers.base import Result
from lineproof.routers.command_file import CommandFile
from lineproof.routers.command_line_shell import CommandLineShell
from lineproof.routers.generic import Generic

VERSION = {"run": "v", "pattern": "^is (?P<version>.+)", "example": "is 1", "expected": {"version": "1"}}


def router(commands: Mapping[str, Any], answers: Mapping[str, str], status: int = 0, **more: Any) -> Generic:
    """A router that *commands* describe, and that answers so."""
    file = CommandFile.model_validate({"shell": "mybox", "commands": commands, **more})
    return Generic(CommandLineShell(lambda line, limit: Result(answers[line], "", status, 0.0), file), file)


def wait() -> None:
    """Traffic, here."""


@pytest.mark.parametrize("channel", ["exec", "terminal"])
def test_a_router_without_single_commands_gets_the_hint_of_a_terminal(channel: str) -> None:
    more = {"channel": channel, "terminal": {"prompt": "x#", "prompts": ["x#"]}} if channel == "terminal" else {}
    with pytest.raises(TestbedError, match="exec is not supported") as caught:
        router({"version": VERSION}, {"v": "exec is not supported\n"}, 1, **more).identify()
    hint = "expected 'channel: terminal' in variables/shells/mybox.yaml"
    assert (hint in str(caught.value)) == (channel == "exec")


def test_a_router_that_answers_gets_the_entry_to_fix() -> None:
    with pytest.raises(TestbedError, match=r"fix 'commands\.version' in variables/shells/mybox\.yaml$"):
        router({"version": VERSION}, {"v": "odd\n"}).identify()


def test_load_and_temperature_are_in_the_table_of_the_router_under_load() -> None:
    queries = {
        "load": {"run": "l", "pattern": r"(?P<percent>\d+) %", "example": "1 %", "expected": {"percent": 1}},
        "temperature": {"run": "t", "pattern": r"(?P<celsius>\d+) C", "example": "1 C", "expected": {"celsius": 1}},
    }
    found = router(queries, {"l": "97 %\n", "t": "61 C\n"}).under_load(wait)
    assert dict(found.condition) == {"load": "97 %", "temperature": "61 °C"} and not found.unread
    table = under_load_fragment(found.at(1e6, 1e6, 9e5), "t")
    assert ">97 %<" in table and ">61 °C<" in table
    odd = router(queries, {"l": "97 %\n", "t": "hot\n"}).under_load(wait)
    assert dict(odd.condition) == {"load": "97 %"} and list(odd.unread) == ["temperature"]
