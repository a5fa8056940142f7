"""Sentences, and the words in them, for a reader who knows nothing of networks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...units import si
from ..records import RequirementRecord


def in_plain_words(record: RequirementRecord) -> str:
    """Return what the sentence of *record* promises."""
    demand = record.demand
    least = "at least" if demand.at_least else "at most"
    figure = f"{least} {demand.text()}{f' {demand.scope}' if demand.scope else ''}"
    load = "offered as much as the generator can send"
    if demand.load_pps:
        load = f"offered {si(demand.load_pps, 'pps')} at each port"
    return demand.measures.plain(record.promise, figure, load)


_WORDS = (
    (r"\b(\d+)b\b", "frames (pieces of data) of so many bytes, as 64b of 64; small ones are the hardest"),
    (r"\bimix", "a mix of small, middle and large frames, as on the Internet"),
    (r"\b1-flow\b", "all frames belong to one connection, which one core of the processor has to carry"),
    (r"\bunidirectional\b", "in one direction"),
    (r"\bbidirectional\b", "in both directions at once"),
    (r"\beach way\b", "the figure is that of the worse direction"),
    (r"\bin total\b", "the figure is the sum of the directions; two full directions are 200 %"),
    (r"\bline rate\b", "as many frames as the cable can carry; 100 % is a full cable in one direction"),
    (r"\b[MkG]?pps\b", "frames per second; kpps: thousands, Mpps: millions of them"),
    (r"\b[GMk]bps L1\b", "bits per second on the cable, with the gaps between frames"),
    (r"\b[GMk]bps L2\b", "bits per second of frames, without the gaps between them"),
    (r"\b[µm]s\b", "µs: millionths of a second, ms: thousandths"),
    (r"\bcycles/packet\b", "steps of the processor for a frame"),
    (r"\bforwards\b", "what is delivered while more is offered than the router can carry"),
    (r"\bpdv\b", "how much longer frames take than the fastest one"),
)

FIXED = {
    "PASS": "the promise was kept, and the testbed really put the load on the cable",
    "FAIL": "the promise was not kept; the router is the reason",
    "INCONCLUSIVE": "nothing is proven, neither for nor against the router; the testbed is the reason",
    "trial": "one period of traffic whose frames are counted: sent and received",
    "goal": "the rule that says how many trials a verdict takes, and how much a trial may lose",
    "interval": "within it the mean lies with the confidence that the column's head says",
    "margin": "by how much the figure is better (+) or worse (−) than promised",
}
"""The sheet's own words."""


def glossary(records: Sequence[RequirementRecord]) -> Iterator[tuple[str, str]]:
    """Word and meaning: of the sentences those that occur, then the sheet's own."""
    sentences = " \n ".join(record.sentence for record in records)
    for pattern, meaning in _WORDS:
        found = list(dict.fromkeys(match[0] for match in re.finditer(pattern, sentences)))
        if found:
            yield ", ".join(found[:6]), meaning
    yield from FIXED.items()
