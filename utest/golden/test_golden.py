"""The program says what it said when the net was last written."""

from __future__ import annotations

import pytest

from golden import decisions, net, runs

NO_PROCESS = ("messages", "schemas", "telemetry")

BY_HAND = ("studies",)
"""Parts that are not among the tests, as they take nine minutes of CPU: ``python -m utest.golden studies``."""


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


def test_a_sample_of_the_decisions_has_not_changed() -> None:
    assert decisions.differences(range(0, decisions.SEEDS, 97)) == []
