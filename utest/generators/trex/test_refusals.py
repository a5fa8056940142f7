"""What is added to a server's refusal of streams."""

from __future__ import annotations

import pytest

from lineproof.generators.trex.driver import remedy_of


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("Failed parsing given packet for flow stat.  NIC does not support Q in Q", "started with '--software'"),
        ("Failed allocating statistic counter. Probably all are used for this rule type.", "fewer streams with flow"),
    ],
)
def test_a_refusal_that_names_no_remedy_gets_one(words: str, remedy: str) -> None:
    assert remedy in remedy_of(words)


def test_other_refusals_stay_as_they_are() -> None:
    assert remedy_of("port is already taken by 'bob'") == ""
