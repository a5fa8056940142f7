"""A real kernel router is limited by one condition at a time: the paragraph of the FAIL names it."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial

import pytest

from lineproof.core.explanation import Confidence
from lineproof.core.rule import Ruling
from lineproof.core.verdict import Verdict
from lineproof.session.explaining import explained, read_under_load
from lineproof.session.judging import judge
from lineproof.session.session import Session
from support.kernel_router import configured, run_in_router
from support.patience import undisturbed

pytestmark = [pytest.mark.netns, pytest.mark.skipif(shutil.which("tc") is None, reason="this machine has no 'tc'")]

IN, OUT = "lr-r0", "lr-r1"
SENTENCE = "64b 1-flow unidirectional ≥ 20 kpps"
OF_CARDS = ("card", "sending ring", "firmware", "PCIe")
HALF = "4,32 0 0 4294963256,53 0 1 2147483648,6 0 0 2,6 0 0 0"
"""A filter that drops half of the packets: a random number above 2**31 (classic BPF, 2: TC_ACT_SHOT)."""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with configured(tmp_path_factory.mktemp("runtime")) as opened:
        yield opened


@contextlib.contextmanager
def set_up(session: Session, commands: Sequence[str], undo: str) -> Iterator[None]:
    """The router with *commands* run in it, until *undo*. Skips where it lacks what they need."""
    run = partial(run_in_router, session, "sh", "-c")
    try:
        for command in commands:
            try:
                run(command)
            except subprocess.CalledProcessError as error:
                pytest.skip(f"this machine refuses '{command}': {error.stderr.strip()}")
        yield
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            run(undo)


def judged(session: Session, sentence: str = SENTENCE) -> Verdict:
    """The verdict and its reasons, read as a suite's run reads them."""
    requirement = session.plan.requirement(sentence)
    facts = session.router.driver.facts()
    verdict = judge(session, requirement)
    return explained(verdict, facts, read_under_load(session, requirement, session.plan.load_for(requirement)))


def why(session: Session, sentence: str = SENTENCE) -> Verdict:
    """The same, of a generator that had the time to send its load."""

    def lacks(verdict: Verdict) -> str:
        return verdict.message if verdict.ruling is Ruling.INCONCLUSIVE else ""

    return undisturbed(lambda: judged(session, sentence), lacks, tries=6)


CONDITIONS = {
    "a shaper": (
        (f"tc qdisc add dev {OUT} root tbf rate 4mbit burst 10kb limit 20kb",),
        f"tc qdisc del dev {OUT} root",
        ("shaper", Confidence.CERTAIN, f"{OUT}, tbf rate 4Mbit"),
    ),
    "a filter": (
        (f"tc qdisc add dev {IN} ingress", f"tc filter add dev {IN} ingress bpf da bytecode '{HALF}'"),
        f"tc qdisc del dev {IN} ingress",
        ("filter", Confidence.CERTAIN, f"by filters of tc (ingress) at {IN}"),
    ),
    "a firewall": (
        (
            "nft 'add table ip t; add chain ip t c { type filter hook forward priority 0; };"
            " add rule ip t c limit rate over 5000/second drop'",
        ),
        "nft delete table ip t",
        ("filter", Confidence.LIKELY, "its firewall is on: nftables (forward)"),
    ),
}
"""Other rules are read from recorded outputs (golden ``linux-netns``, test_why.py, test_facts.py)."""


@pytest.mark.parametrize("name", CONDITIONS)
def test_what_drops_by_its_settings_is_named(session: Session, name: str) -> None:
    commands, undo, (rule, confidence, words) = CONDITIONS[name]
    with set_up(session, commands, undo):
        verdict = why(session)
    assert verdict.ruling is Ruling.FAIL, verdict.message
    first = verdict.why.explanation
    assert first and (first.rule, first.confidence) == (rule, confidence), verdict.message
    assert words in first.words, verdict.message
    assert not [word for word in OF_CARDS if word in first.words]
    (ledger,) = verdict.ledgers
    assert ledger.lost > 1000


def test_a_blackhole_route_gives_no_reason_that_is_not_there(session: Session) -> None:
    network = session.testbed.facts.sides[1].network
    own = f"ip route replace {network} via {session.testbed.facts.sides[1].peer} dev {OUT}"
    with set_up(session, (f"ip route replace blackhole {network}",), own):
        verdict = why(session)
    assert verdict.ruling is Ruling.FAIL and "look at its filters and blackhole routes" in verdict.message
    # with a firewall on this machine it may be that
    assert verdict.why.explanation is None or verdict.why.explanation.rule == "filter"


def test_a_generator_at_its_limit_is_named_and_no_router(session: Session) -> None:
    verdict = judged(session, "64b unidirectional ≥ 5 Mpps")
    assert verdict.ruling is Ruling.INCONCLUSIVE, verdict.message
    lost = sum(trial.lost for trial in verdict.trials)
    why = verdict.why.explanation
    assert (why.rule if why else "") == ("" if lost else "generator")
