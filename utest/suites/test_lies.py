"""Real frames through a router that lies: no lie passes, and what is wrong is named; an honest router passes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from lineproof.core.rule import Ruling
from lineproof.session.session import Session
from support.kernel_router import configured
from support.lying_router import lying
from support.simulated_session import judged

pytestmark = [
    pytest.mark.netns,
    pytest.mark.skipif(shutil.which("nft") is None, reason="this machine has no 'nft'"),
]

LOAD = 2000.0
"""Frames/s of a direction: what the lying program carries on a slow machine as well."""

ONE_WAY, BOTH = "64b unidirectional ≥ 2 kpps", "64b bidirectional ≥ 2 kpps each way"
MIX, LONG = "imix unidirectional ≥ 2 kpps", "1514b unidirectional ≥ 2 kpps"
SOON = "64b unidirectional latency p50 ≤ 10 ms at 2 kpps"
BOTH_SOON = "64b bidirectional latency p50 ≤ 10 ms at 2 kpps each way"
MIX_SOON = "imix unidirectional latency p99 ≤ 10 ms at 2 kpps"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with configured(tmp_path_factory.mktemp("runtime")) as opened:
        yield opened


@pytest.mark.parametrize(
    ("sentence", "lie", "limits", "words"),
    [
        (ONE_WAY, "payload", {}, "payload"),
        (ONE_WAY, "payload", {"every": 50}, "payload"),
        (BOTH, "payload", {"above": LOAD, "port": 1}, "payload"),
        (MIX, "payload", {"size": 1518}, "payload"),
        (ONE_WAY, "payload", {"flow": 3}, "payload"),
        (LONG, "length", {}, "bytes"),
        (MIX, "length", {"every": 50}, "bytes"),
        (ONE_WAY, "checksum", {"every": 50}, "checksum"),
        (ONE_WAY, "ttl", {}, "time to live"),
        (ONE_WAY, "addresses", {}, "other addresses"),
        (ONE_WAY, "mac", {}, "MAC address"),
        (ONE_WAY, "copies", {}, "copies"),
        (ONE_WAY, "cached", {}, "copies"),
        (ONE_WAY, "flow", {}, "copies"),
        ("64b 1-flow unidirectional ≥ 2 kpps", "copies", {}, "come back twice"),
        ("64b 1-flow unidirectional ≥ 2 kpps", "cached", {}, "probe frames were lost"),
        (BOTH, "hairpin", {"every": 50}, "another direction"),
        (ONE_WAY, "lldp", {"every": 50}, "other origin"),
        (ONE_WAY, "late copies", {"every": 25, "hold": 0.01}, "copies"),
        (ONE_WAY, "mark", {"every": 50}, "IP header"),
        (ONE_WAY, "padding", {"every": 50}, "longer"),
        (ONE_WAY, "lost", {"every": 50, "spare": True}, "lost at least"),
        (MIX_SOON, "late", {"size": 1518}, "p99"),
        (SOON, "late", {"spare": True}, "later than the probe frames"),
        (BOTH_SOON, "late", {"spare": True, "hold": 0.02, "port": 1}, "later than the probe frames"),
    ],
)
def test_a_router_that_lies_does_not_pass(
    session: Session, sentence: str, lie: str, limits: dict[str, Any], words: str
) -> None:
    with lying(session.testbed, lie, **limits):
        verdict = judged(session, sentence)
    assert verdict.ruling is not Ruling.PASS
    assert words in verdict.message


@pytest.mark.parametrize(
    "sentence", [ONE_WAY, BOTH, MIX, LONG, MIX_SOON, BOTH_SOON, "66b ipv6 unidirectional ≥ 2 kpps"]
)
def test_an_honest_router_with_the_same_sender_passes(session: Session, sentence: str) -> None:
    with lying(session.testbed, "truth"):
        assert judged(session, sentence).ruling is Ruling.PASS
