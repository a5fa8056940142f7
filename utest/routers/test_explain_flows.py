"""What the flows are: one in each direction, or many, which a card spreads by addresses or by ports too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lineproof.counts.explanation import Confidence
from lineproof.counts.router_facts import NicFacts, Placement
from lineproof.counts.under_load import CpuLoad, UnderLoad, WorkerLoad
from lineproof.routers.explain import explain
from support.ceilings import CATALOGUE
from support.why_evidence import FORWARDED, OFFERED, TRIED, facts, ledger, load, nic


@pytest.mark.parametrize(
    ("rate", "rule", "confidence"),
    [
        (0.0, "shared worker", Confidence.LIKELY),
        (3.0, "shared worker", Confidence.LIKELY),
        (72e3, "shared worker", Confidence.LIKELY),
        # each flow has a worker
        (4e6, "one flow", Confidence.CERTAIN),
        # whether the flow enters by the other queue is not known
        (None, "one flow", Confidence.LIKELY),
    ],
)
def test_a_few_packets_on_another_worker_do_not_hide_that_one_is_shared(
    rate: float | None, rule: str, confidence: Confidence
) -> None:
    placed = facts((*(Placement(name, 0, "w0") for name in "ab"), Placement("a", 1, "w1")))
    seen = replace(load(), workers=(WorkerLoad("w0", 1.0, 6e6), WorkerLoad("w1", 0.01, rate)))
    found = explain(replace(TRIED, flows=1), ledger(both=True), placed, seen)[0]
    assert (found.rule, found.confidence) == (rule, confidence)


@pytest.mark.parametrize("rate", [None, 72e3, 4e6])
@pytest.mark.parametrize("system", ["FreeBSD 14.1-RELEASE", "Debian GNU/Linux 12"])
def test_two_flows_whose_only_queues_are_on_one_processor_share_it(system: str, rate: float | None) -> None:
    """FreeBSD does not say how many packets each processor handles; a count of Linux may have begun again."""
    busy = (1.0, 0.02, 0.01, 0.0)
    cpus = tuple(CpuLoad(number, share, share, rate if number else 6e6) for number, share in enumerate(busy))
    seen = UnderLoad(OFFERED, OFFERED, FORWARDED, cpus=cpus)
    alone = tuple(Placement(name, 0, "CPU 0") for name in "ab")
    tried, lost = replace(TRIED, flows=1), ledger(both=True)

    def found(placed: tuple[Placement, ...], *nics: NicFacts) -> tuple[str, Confidence]:
        first = explain(tried, lost, facts(placed, os=system, threads_per_core=1, nics=nics), seen)[0]
        return first.rule, first.confidence

    assert found(alone) == ("shared worker", Confidence.CERTAIN)
    assert found((alone[0], Placement("b", 0, "CPU 1"))) == ("one flow", Confidence.CERTAIN)
    # the flow of b may enter by a queue whose place was not read
    if rate is None:
        assert found(alone, nic(interface="b", rx_queues=2)) == ("one flow", Confidence.LIKELY)
        assert found(alone, nic(rx_queues=1, steered_to={0: "0,1"})) == ("one flow", Confidence.LIKELY)


def test_without_placement_two_flows_may_share_the_only_busy_worker() -> None:
    seen = replace(load(), workers=(WorkerLoad("w0", 1.0), WorkerLoad("w1", 0.0), WorkerLoad("w2", 0.0)))
    found = explain(replace(TRIED, flows=1), ledger(both=True), None, seen)[0]
    assert (found.rule, found.confidence) == ("one flow", Confidence.LIKELY)


BY_ADDRESSES = nic(rx_queues=3, rss_fields=("IP SA", "IP DA"))


@pytest.mark.parametrize(
    ("vary", "rule", "confidence"),
    [
        # ports that all flows share permute the queues, and spread nothing
        (False, "uneven workers", Confidence.POSSIBLE),
        (True, "address hash", Confidence.LIKELY),
        (None, "address hash", Confidence.POSSIBLE),
    ],
)
def test_a_hash_of_addresses_is_no_cause_where_the_ports_stay(
    vary: bool | None, rule: str, confidence: Confidence
) -> None:
    found = explain(replace(TRIED, ports_vary=vary), ledger(), facts(nics=(BY_ADDRESSES,)), load(1.0, 0.2, 0.2))[0]
    assert (found.rule, found.confidence) == (rule, confidence)


@pytest.mark.parametrize("vary", [False, True, None])
def test_a_hash_of_addresses_does_not_hide_that_one_processor_serves_all_queues(vary: bool | None) -> None:
    cpus = tuple(CpuLoad(number, share, share, 6e6 * share) for number, share in enumerate((1.0, 0.1, 0.0)))
    seen = UnderLoad(OFFERED, OFFERED, FORWARDED, cpus=cpus)
    served = tuple(Placement("a", queue, "CPU 0") for queue in range(3))
    tried = replace(TRIED, ports_vary=vary)
    assert explain(tried, ledger(), facts(served, nics=(BY_ADDRESSES,)), seen)[0].rule == "one processor"


def test_the_flows_of_the_catalogue_have_the_same_ports() -> None:
    for words in ("64b", "64b 1-flow", "64b 2000-flows", "64b 256-networks", "imix", "datagram-1500"):
        assert CATALOGUE.profile(words.split()).flows.ports_vary is False
