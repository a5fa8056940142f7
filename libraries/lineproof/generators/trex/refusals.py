"""What to do where a TRex server refuses streams, by its words (v3.08, src/flow_stat_parser.cpp, src/stx/stl)."""

from __future__ import annotations

_REMEDIES = {
    "for flow stat": "; the card's filters cannot count such frames; expected TRex started with '--software'",
    "Failed allocating statistic counter": "; the card counts no more streams at a time ('lineproof doctor' shows how"
    " many); expected fewer streams with flow statistics, or TRex started with '--software'",
}


def remedy_of(refusal: str) -> str:
    """What to add to the server's words; "" where they say enough."""
    return next((remedy for words, remedy in _REMEDIES.items() if words in refusal), "")
