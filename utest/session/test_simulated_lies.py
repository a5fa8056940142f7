"""The simulated router that carries other frames than it was sent does not pass, and what is wrong is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lineproof.core.rule import Ruling
from lineproof.session.came_back import Content
from lineproof.simulation.faults import parse_fault
from support.simulated_session import judged, opened

SENTENCE, MIX = "64b bidirectional ≥ 1 Mpps each way", "imix bidirectional ≥ 300 kpps each way"


@pytest.mark.parametrize(
    ("sentence", "lie", "words"),
    [
        (SENTENCE, {"what": "payload"}, "payload"),
        (SENTENCE, {"what": "payload", "share": 0.02}, "payload"),
        (SENTENCE, {"what": "payload", "above": 600e3}, "payload"),
        (SENTENCE, {"what": "payload", "flow": 7}, "payload"),
        (MIX, {"what": "payload", "size": 1518, "port": 1}, "payload"),
        (MIX, {"what": "length"}, "bytes"),
        (SENTENCE, {"what": "checksum"}, "checksum"),
        (SENTENCE, {"what": "ttl"}, "time to live"),
        (SENTENCE, {"what": "addresses"}, "addresses"),
        (SENTENCE, {"what": "mac"}, "MAC address"),
        (SENTENCE, {"what": "cached"}, "copies"),
        (SENTENCE, {"what": "copies"}, "copies"),
        (SENTENCE, {"what": "flow"}, "copies"),
        (SENTENCE, {"what": "hairpin", "share": 0.02}, "another direction"),
        (SENTENCE, {"what": "lldp", "share": 0.02}, "other origin"),
    ],
)
def test_a_simulated_router_that_lies_does_not_pass(
    tmp_path: Path, sentence: str, lie: dict[str, Any], words: str
) -> None:
    with opened(tmp_path) as session:
        session.cause_fault(parse_fault("changed frames", **lie))
        verdict = judged(session, sentence)
    assert verdict.ruling is not Ruling.PASS
    assert words in verdict.message


@pytest.mark.parametrize(("what", "words"), [("hairpin", "more probe frames were lost"), ("copies", "come back twice")])
def test_where_no_frames_are_kept_at_the_load_probe_frames_show_it(
    tmp_path: Path, what: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Content, "is_kept_at_any_load", False)
    with opened(tmp_path) as session:
        session.cause_fault(parse_fault("changed frames", what=what, share=0.02, above=600e3))
        verdict = judged(session, SENTENCE)
    assert verdict.ruling is not Ruling.PASS
    assert words in verdict.message
