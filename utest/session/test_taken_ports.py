"""Ports that another user of the generator has are waited for, as long as the testbed's file allows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lineproof.generators.base import PortsTaken
from lineproof.session import generator
from lineproof.session.generator import GeneratorConnection
from lineproof.testbed.settings import HardwareSettings

TAKEN = PortsTaken("a port of the TRex server at a:4501 is taken: port 0 is owned by 'alice'")


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "PORTS_POLL", 0.01)
    monkeypatch.setattr(generator, "AFTER_OTHERS", 0.01)


def free(wait: float, *answers: object) -> tuple[Any, list[str]]:
    """Return what comes of connecting to a generator that gives *answers* in turn, and what is said."""
    settings = {"testbed": "lab", "kind": "hardware", "generator": {"address": "a"}, "wait_for_testbed": wait}
    lines, left = list[str](), list(answers)

    def connect(_: Any) -> Any:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    plan: Any = SimpleNamespace(testbed=HardwareSettings.model_validate(settings))
    testbed: Any = SimpleNamespace(say=lines.append)
    return GeneratorConnection(plan, testbed)._free_generator(connect), lines


def test_they_are_claimed_once_they_are_free() -> None:
    assert free(10, TAKEN, TAKEN, "a generator") == (
        "a generator",
        [f"waiting for testbed 'lab', at most 10 s: {TAKEN}"],
    )


def test_ports_that_are_free_are_not_waited_for() -> None:
    assert free(10, "a generator") == ("a generator", [])


@pytest.mark.parametrize("wait", [0, 0.05])
def test_the_error_is_that_of_the_ports_without_time_or_after_it(wait: float) -> None:
    with pytest.raises(PortsTaken, match="owned by 'alice'"):
        free(wait, TAKEN)
