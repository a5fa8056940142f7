"""Each fault of the simulated testbed, the sentences that it meets, and the verdicts that they get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lineproof.counts.trial import Fault as Problem

SENTENCES: Mapping[str, str] = {
    "verify": "64b 1-flow unidirectional ≥ 1 Mpps",
    "saturate": "64b 1-flow unidirectional forwards ≥ 1 Mpps",
    "latency": "64b 1-flow unidirectional latency p99 ≤ 1 ms at 1 Mpps",
}
"""One for each method; all are kept with a wide margin."""

BIDIRECTIONAL: Mapping[str, str] = {
    "verify": "64b 1-flow bidirectional ≥ 1 Mpps each way",
    "saturate": "64b 1-flow bidirectional forwards ≥ 1 Mpps each way",
    "latency": "64b 1-flow bidirectional latency p99 ≤ 1 ms at 1 Mpps each way",
}
"""The same, in both directions."""


@dataclass(frozen=True)
class FaultCase:
    """*details*: the fault's keys; ``expected``: ruling and cause (a piece of the reason) whatever the method is.

    A PASS comes after the trials with problems were repeated; its cause is among these problems.
    """

    name: str
    kind: str
    about: str
    expected: str
    cause: str
    details: Mapping[str, Any] = field(default_factory=dict)
    saturate: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the fault that differ when saturating, which sends more."""
    others: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Ruling and cause by method, if they differ."""
    sentences: Mapping[str, str] = field(default_factory=lambda: SENTENCES)

    def expected_for(self, method: str) -> tuple[str, str]:
        """Ruling and cause."""
        return self.others.get(method, (self.expected, self.cause))


TRIAL = 2
"""The start of traffic, from the sentence's warm-up on, that is its first trial."""

CASES = (
    FaultCase(
        "a link flaps in one trial",
        "link flap",
        "no carrier for 0.2 s",
        "PASS",
        Problem.LINK_DOWN.value,
        {"start": TRIAL, "at": 0.5, "for": 0.2},
    ),
    FaultCase(
        "a link flaps in every trial",
        "link flap",
        "no carrier for 0.2 s, each time",
        "INCONCLUSIVE",
        Problem.LINK_DOWN.value,
        {"start": TRIAL, "at": 0.5, "for": 0.2, "every": True},
    ),
    FaultCase(
        "the router reboots",
        "router reboot",
        "mid-trial, 20 s: frames lost, links down, counters and uptime from zero, configuration gone",
        "INCONCLUSIVE",
        "a link was down|restarted|the SSH link",
        {"start": TRIAL + 1, "at": 0.3, "for": 20},
    ),
    FaultCase(
        "a router that reboots unseen",
        "router reboot",
        "within 10 ms, after the last trial began",
        "INCONCLUSIVE",
        "the router restarted",
        {"start": TRIAL + 3, "at": 0.3, "for": 0.01},
    ),
    FaultCase(
        "the router sends pause frames",
        "pause frames",
        "in one trial, so that the generator sends 20 % less",
        "PASS",
        Problem.PAUSED.value,
        {"start": TRIAL, "for": 0.5},
    ),
    FaultCase(
        "the router goes on sending pause frames",
        "pause frames",
        "from then on, so that the generator sends 95 % less",
        "INCONCLUSIVE",
        Problem.PAUSED.value,
        {"start": TRIAL, "share": 0.95},
    ),
    FaultCase(
        "the generator sends pause frames",
        "pause frames",
        "from then on; the router waits as long as they say",
        "INCONCLUSIVE",
        Problem.PAUSING.value,
        {"start": TRIAL, "of": "generator"},
    ),
    FaultCase(
        "the router forgets a neighbour",
        "neighbour lost",
        "the entry of the generator's receiving port ages, mid-trial: frames for it are dropped",
        "INCONCLUSIVE",
        "no neighbour entry for",
        {"start": TRIAL, "at": 0.3},
    ),
    FaultCase(
        "SSH is cut",
        "ssh cut",
        "the connection ends in the command that reads the counters",
        "PASS",
        "",
        {"start": TRIAL},
    ),
    FaultCase(
        "SSH freezes once",
        "ssh freeze",
        "no answer to one command that reads the counters",
        "PASS",
        "",
        {"start": TRIAL},
    ),
    FaultCase(
        "SSH freezes for good",
        "ssh freeze",
        "no answer to any command from the first trial on",
        "PASS",
        "the router could not be read afterwards",
        {"start": TRIAL, "every": True},
        others={"saturate": ("INCONCLUSIVE", "the router could not be read afterwards")},
    ),
    FaultCase(
        "a second user takes the ports",
        "ports stolen",
        "by force, mid-trial",
        "INCONCLUSIVE",
        "taken by 'somebody'",
        {"start": TRIAL + 1, "at": 0.3},
    ),
    FaultCase(
        "frames not sent in one trial",
        "unsent frames",
        "the transmit queue is full: 20 % are not sent",
        "PASS",
        Problem.UNDER_OFFERED.value,
        {"start": TRIAL, "for": 1.0},
    ),
    FaultCase(
        "frames not sent from then on",
        "unsent frames",
        "the transmit queue is full: 95 % are not sent",
        "INCONCLUSIVE",
        f"{Problem.UNDER_OFFERED.value}|the generator offered",
        {"start": TRIAL, "share": 0.95},
    ),
    FaultCase(
        "the generator stalls in one trial",
        "stalled generator",
        "a port sends nothing for 0.2 s, then goes on; it counts as sending all the time",
        "PASS",
        Problem.UNDER_OFFERED.value,
        {"start": TRIAL, "at": 0.5},
    ),
    FaultCase(
        "frames are lost one way",
        "one-way loss",
        "1 % (saturating: 90 %) of what port 1 sends; the sentence is bidirectional",
        "FAIL",
        "from port 1 to port 0",
        {"start": TRIAL},
        {"share": 0.9},
        {"latency": ("FAIL", "a lost frame is later than any limit")},
        BIDIRECTIONAL,
    ),
    FaultCase(
        "frames are lost the other way",
        "one-way loss",
        "90 % of what port 1 sends; the sentence asks for port 0 to port 1",
        "PASS",
        "",
        {"start": TRIAL, "share": 0.9},
    ),
    FaultCase(
        "frames are lost by a cable",
        "one-way loss",
        "1 % (saturating: 99 %) of what port 1 sends, before the router counts it; the sentence is bidirectional",
        "FAIL",
        "it never counted them as received",
        {"start": TRIAL, "of": "cable"},
        {"share": 0.99},
        sentences=BIDIRECTIONAL,
    ),
    FaultCase(
        "frames come out of order", "reordered frames", "1 % of them, from then on", "PASS", "", {"start": TRIAL}
    ),
    FaultCase(
        "probe frames come late",
        "late frames",
        "5 % of them take 1.5 s, from then on",
        "PASS",
        "",
        {"start": TRIAL, "share": 0.05},
        others={"latency": ("INCONCLUSIVE", "later than 1 s")},
    ),
    FaultCase(
        "flow statistics are dropped",
        "flow stats dropped",
        "answers tell of no packet group",
        "PASS",
        "",
        {"start": TRIAL},
        others={"latency": ("INCONCLUSIVE", "reported no latency")},
    ),
    FaultCase(
        "flow statistics count nothing",
        "flow stats dropped",
        "zeros in place of counts",
        "PASS",
        "",
        {"start": TRIAL, "shows": "zeros"},
        others={"latency": ("INCONCLUSIVE", "probe frames came back")},
    ),
    FaultCase(
        "frames come twice in one trial",
        "duplicated frames",
        "1 % of them",
        "PASS",
        Problem.SURPLUS.value,
        {"start": TRIAL, "for": 1.0},
        others={"saturate": ("INCONCLUSIVE", "frames come twice")},
    ),
    FaultCase(
        "frames come twice from then on",
        "duplicated frames",
        "1 % of them",
        "INCONCLUSIVE",
        Problem.SURPLUS.value,
        {"start": TRIAL},
        others={"saturate": ("INCONCLUSIVE", "frames come twice")},
    ),
    FaultCase(
        "the generator's counters reset",
        "counter reset",
        "to zero, mid-trial",
        "PASS",
        Problem.COUNTERS.value,
        {"start": TRIAL, "at": 0.5},
    ),
    FaultCase(
        "the receiving port's counters reset",
        "counter reset",
        "to zero, mid-trial; the sending port's go on",
        "PASS",
        Problem.COUNTERS.value,
        {"start": TRIAL, "at": 0.5, "port": 1},
    ),
    FaultCase(
        "the generator's counters wrap",
        "counter wrap",
        "at 32 bits, within a trial",
        "PASS",
        Problem.COUNTERS.value,
        {"start": 0, "frames": 1_500_000},
        {"frames": 20_000_000},
    ),
    FaultCase(
        "the router's counters reset",
        "counter reset",
        "to zero, mid-trial; it does not restart",
        "PASS",
        "",
        {"start": TRIAL, "at": 0.5, "of": "router"},
        others={"saturate": ("INCONCLUSIVE", "the router's counters were reset")},
    ),
    FaultCase(
        "an answer comes late",
        "late reply",
        "by 1 s",
        "PASS",
        "",
        {"start": TRIAL, "hold": 1.0},
    ),
    FaultCase(
        "an answer never comes",
        "late reply",
        "or after the client's 5 s",
        "INCONCLUSIVE",
        "no longer answers",
        {"start": TRIAL, "hold": 30.0},
    ),
    FaultCase(
        "an answer is lost",
        "lost reply",
        "one answer of the server never comes; the next ones do",
        "INCONCLUSIVE",
        "no longer answers",
        {"start": TRIAL, "at": 0.3},
    ),
    FaultCase(
        "the server restarts",
        "server restart",
        "its process ends mid-trial and is started again after 20 s; the router is not touched",
        "INCONCLUSIVE",
        "'server' ended",
        {"start": TRIAL, "at": 0.3},
    ),
    FaultCase(
        "the server ends",
        "server end",
        "its process dies mid-trial",
        "INCONCLUSIVE",
        "'server' ended",
        {"start": TRIAL, "at": 0.3},
    ),
)
