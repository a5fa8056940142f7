"""The program says what it said when the net was last written."""

from __future__ import annotations

import pytest

from golden import decisions, net, runs

NO_PROCESS = ("messages", "schemas", "telemetry")

BY_HAND = ("decisions", "studies")
"""Parts of which tests take a sample at most, as they take one and nine minutes of CPU: ``python -m utest.golden``."""


@pytest.mark.parametrize(
    "part",
    [
        name if name in NO_PROCESS else pytest.param(name, marks=pytest.mark.slow)
        for name in net.NAMES
        if name not in BY_HAND
    ],
)
def test_nothing_that_the_program_says_has_changed(part: str) -> None:
    changes = net.changes(part, net.texts(part))
    if changes:
        runs.forget()
    assert changes == []


@pytest.mark.parametrize("step", [97, pytest.param(7, marks=pytest.mark.slow)])
def test_a_sample_of_the_decisions_has_not_changed(step: int) -> None:
    assert decisions.differences(range(0, decisions.SEEDS, step)) == []
