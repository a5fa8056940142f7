"""The paragraph that says why: in the message of a FAIL, in its record, and judged again to the same words."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.causes import Stage
from lineproof.core.ledger import DirectionAccount, Drop, Ledger
from lineproof.core.router_facts import NicFacts, Placement, RouterFacts
from lineproof.core.rule import Ruling
from lineproof.core.under_load import CpuLoad, NodeLoad, QueueLoad, UnderLoad, WorkerLoad
from lineproof.core.verdict import Verdict
from lineproof.evidence.json_fields import field_data
from lineproof.evidence.under_load_record import recorded_facts, recorded_load, why_data
from lineproof.session.explaining import explained
from support.ceilings import failed

OFFERED = 6_000_000
FACTS = RouterFacts(
    os="Ubuntu 24.04",
    placement=tuple(Placement("eth0", queue, f"vpp_wk_{queue}") for queue in range(3)),
    nics=(NicFacts("eth0", driver="dpdk", pcie_width=4, pcie_speed=8.0, cpus_of_queue={0: "1"}, rss_fields=("ipv4",)),),
    irqbalance=False,
)
LOAD = UnderLoad(
    OFFERED,
    OFFERED,
    0.9 * OFFERED,
    (
        WorkerLoad("vpp_wk_0", 1.0, 5e6, 256.0, 440.0, (NodeLoad("ip4-lookup", 5e6, 30.0, 256.0, 0.1),)),
        WorkerLoad("vpp_wk_1", 0.0, 0.0),
        WorkerLoad("vpp_wk_2", 0.0, 0.0),
    ),
    (QueueLoad("eth0", 0, "vpp_wk_0"),),
    (CpuLoad(0, 1.0, 0.0),),
    {"show runtime": "…"},
    1.0,
)


def verdict(ruling: Ruling = Ruling.FAIL, stage: Stage = Stage.ARRIVING) -> Verdict:
    found = failed("64b 1-flow unidirectional ≥ 6 Mpps", OFFERED, ruling)
    trial = found.trials[0]
    drop = Drop(stage, "rx-miss", "eth0" if stage is Stage.ARRIVING else "eth1", trial.lost)
    taken = trial.forwarded if stage is Stage.ARRIVING else trial.offered
    row = DirectionAccount(0, 1, "eth0", "eth1", trial.offered, trial.forwarded, taken, trial.forwarded, (drop,))
    return replace(found, ledgers=(Ledger(1, 1, (row,)),))


def test_without_telemetry_only_rules_that_need_none_speak() -> None:
    assert explained(verdict(), None, None).message == verdict().message
    assert explained(verdict(), FACTS, None).message == verdict().message
    leaving = explained(verdict(stage=Stage.LEAVING), None, None)
    assert [item.rule for item in leaving.why.explanations] == ["tx slots"]


@pytest.mark.parametrize("ruling", [Ruling.PASS, Ruling.INCONCLUSIVE])
def test_only_a_fail_is_explained_by_the_router(ruling: Ruling) -> None:
    assert explained(verdict(ruling), FACTS, LOAD).why.explanations == ()
    assert explained(verdict(ruling), FACTS, LOAD).message == verdict(ruling).message


@pytest.mark.parametrize(
    ("sentence", "lost", "rules"),
    [
        ("latency p99 ≤ 10 µs at 1 Mpps", 0.0, []),
        ("pdv p99 ≤ 10 µs at 1 Mpps", 0.0, []),
        ("costs ≤ 300 cycles/packet at 1 Mpps", 0.0, []),
        # frames that are lost are late, but cost nothing
        ("latency p99 ≤ 10 µs at 1 Mpps", 0.1, ["one flow"]),
        ("costs ≤ 300 cycles/packet at 1 Mpps", 0.1, []),
        ("recovers in ≤ 1 s", 0.1, []),
        ("loses ≤ 1% at 1 Mpps", 0.1, ["one flow"]),
    ],
)
def test_a_fail_that_no_loss_made_has_no_reason_of_loss(sentence: str, lost: float, rules: list[str]) -> None:
    found = failed(f"64b 1-flow unidirectional {sentence}", OFFERED, lost=lost)
    trial = found.trials[0]
    # the generator sends 2 % less than was asked
    rows = tuple(replace(row, intended=round(row.offered / 0.98)) for row in trial.outcome.directions)
    trial = replace(trial, outcome=replace(trial.outcome, directions=rows))
    ledgers = verdict().ledgers if lost else ()
    why = explained(replace(found, trials=(trial,), ledgers=ledgers), FACTS, LOAD).why
    assert [item.rule for item in why.explanations] == rules and why.load == LOAD


@pytest.mark.parametrize(("received_bytes", "rule"), [(256, "tx slots"), (256.1, "tx slots"), (260, "line")])
def test_a_line_that_is_full_because_frames_grow_is_named(received_bytes: float, rule: str) -> None:
    line = 10e9 / (276 * 8)
    found = failed("256b unidirectional ≥ 99% line rate", line, lost=1 - 276 / 280)
    (row,) = found.trials[0].outcome.directions
    row = replace(row, offered_bytes=256 * row.offered, forwarded_bytes=round(received_bytes * row.forwarded))
    trial = replace(found.trials[0], outcome=replace(found.trials[0].outcome, directions=(row,)))
    drops = (Drop(Stage.LEAVING, "tx-error", "b", row.lost),)
    account = DirectionAccount(0, 1, "a", "b", row.offered, row.forwarded, row.offered, row.forwarded, drops)
    why = explained(replace(found, trials=(trial,), ledgers=(Ledger(1, 1, (account,)),)), None, None).why
    assert [item.rule for item in why.explanations] == [rule]


def test_the_record_has_what_the_same_words_need() -> None:
    found = explained(verdict(), FACTS, LOAD)
    extra = json.loads(json.dumps({"why": why_data(found.why)}))
    facts, load = recorded_facts(json.loads(json.dumps(field_data(FACTS)))), recorded_load(extra)
    assert facts == FACTS and load == replace(LOAD, raw={})
    assert explained(verdict(), facts, load).message == found.message
    assert extra["why"]["explanations"][0]["rule"] == "one flow"
    assert recorded_load({"why": why_data(explained(verdict(), FACTS, None).why)}) is None


json_data = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(-(10**30), 10**30),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["workers", "load_pps", "offered_pps", "forwarded_pps", "load", "cpus", "nics", "other"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(json_data)
def test_a_record_that_holds_anything_gives_facts_and_load_or_none(data: object) -> None:
    assert isinstance(recorded_facts(data), RouterFacts | None)
    assert isinstance(recorded_load({"why": data}), UnderLoad | None)
    assert isinstance(recorded_load({"why": {"load": data}}), UnderLoad | None)
