"""Which frames the lying router lies about, and that it routes the others rightly; suites/test_lies.py has its lies."""

from __future__ import annotations

from typing import Any

import pytest

from lineproof_bench.model.flows import frame_of, internet_checksum
from support.lying_router import Direction
from support.model_bench import traffic

ON, BACK = b"\x0a" * 6 + b"\x0b" * 6, b"\x0c" * 6 + b"\x0d" * 6
"""Addresses of frames that go on, and of those that go back."""


@pytest.mark.parametrize(
    ("words", "limits", "left"),
    [
        ("64b", {"every": 4}, 75),
        ("64b", {"port": 0}, 0),
        ("64b", {"port": 1}, 100),
        ("imix", {"size": 594}, 67),
        ("64b", {"flow": 7}, 99),
        ("64b", {"above": 900.0}, 90),
        ("64b", {"above": 1100.0}, 100),
        ("66b ipv6", {"every": 50}, 98),
    ],
)
def test_the_limits_of_a_lie(words: str, limits: dict[str, Any], left: int) -> None:
    frames = [frame_of(row, number) for number in range(100) for row in traffic(words, 1.0)][:100]
    on, back = list[Any](), list[Any]()
    direction = Direction(0, (ON, on.append), (BACK, back.append), "hairpin", **limits)
    for number, frame in enumerate(frames):
        direction.forward(frame, 100.0 + number / 1000)
    assert (len(on), len(back)) == (left, 100 - left)
    for sent in (*on, *back):
        assert (
            sent[:12] in (ON, BACK)
            and sent[21 if "ipv6" in words else 22] == frames[0][21 if "ipv6" in words else 22] - 1
        )
        assert "ipv6" in words or internet_checksum(sent[14:34]) == b"\0\0"
