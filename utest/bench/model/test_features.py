"""What a study's `configured` costs the modelled router: firewalls, states, locks, queues, threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

import pytest

from lineproof.core.sentence import parse_traffic
from lineproof.errors import ConfigError
from lineproof.platforms import Platform, read_platform
from lineproof_bench.model.features import StateTable
from lineproof_bench.model.schema import Scalar, router_model
from support.model_bench import PROJECT, catalogue
from support.model_loads import at_saturation

FREEBSD = tuple(f"freebsd_{name}" for name in ("apu2", "dell_r630", "hp_dl360p", "netgate_rcc_ve", "supermicro_5018a"))


@cache
def box(name: str) -> Platform:
    return read_platform(PROJECT.platforms, name)


def rate(
    name: str, configured: Mapping[str, Scalar], queues: int | None = None, software: str = "", words: str = "64b"
) -> float:
    """Frames/s that box *name* forwards of 2000 flows, with its first patched software."""
    chosen = software or next(key for key in box(name).software if key.endswith("_tuned"))
    model = router_model(box(name), chosen, queues, None, configured)
    return at_saturation(model, parse_traffic(f"{words} 2000-flows unidirectional", catalogue()).profile)[0]


def falls(rates: Sequence[float]) -> bool:
    return all(after <= before * (1 + 1e-9) for before, after in pairwise(rates))


@pytest.mark.parametrize("name", FREEBSD)
@pytest.mark.parametrize("firewall", ["ipfw", "pf", "ipf"])
def test_more_rules_or_states_are_never_faster_and_no_firewall_is_fastest(name: str, firewall: str) -> None:
    on: dict[str, Scalar] = {"firewall": firewall, "stateful": False}
    rules = [rate(name, on | {"rules": count}) for count in (0, 1, 9, 99, 999)]
    states = [rate(name, on | {"stateful": True, "states": count}) for count in (64, 1000, 100_000, 5_000_000)]
    assert falls(rules) and falls(states)
    assert rate(name, {}) >= max(*rules, *states)
    assert rate(name, on | {"table": 10}) == rate(name, on | {"table": 10_000}) <= rules[0]


@pytest.mark.parametrize("name", FREEBSD)
def test_what_is_switched_on_is_never_faster_but_pinning_and_a_local_socket(name: str) -> None:
    for feature, on in box(name).model["features"].items():
        words = "64b vlan" if "vlan" in feature else "64b"
        slower = rate(name, {feature: True}, words=words) <= rate(name, {feature: False}, words=words) * (1 + 1e-9)
        assert slower or feature in ("pinned", "local", "vlan_without_lock"), (feature, on)


def test_queues_that_divide_the_table_are_better_unless_the_driver_sends_by_the_table() -> None:
    def curve(software: str) -> list[float]:
        return [rate("freebsd_dell_r630", {}, count, software) for count in (3, 4, 5, 7, 8, 9)]

    by_hash, by_table = curve("cxgbe_tuned"), curve("mlx5en_tuned")
    assert by_hash[1] > by_hash[2] and by_hash[4] > by_hash[5]
    assert sorted(by_table) == by_table


def test_pf_gets_slower_with_more_cores_and_ipfw_without_states_does_not() -> None:
    pf, ipfw = ({"firewall": name, "stateful": False} for name in ("pf", "ipfw"))
    few, many = (rate("freebsd_dell_r630", pf, count, "cxgbe_tuned") for count in (8, 16))
    assert many < few
    assert rate("freebsd_dell_r630", ipfw, 16, "cxgbe_tuned") > rate("freebsd_dell_r630", ipfw, 8, "cxgbe_tuned")


def test_a_chain_of_states_costs_more_once_it_is_outside_the_cache() -> None:
    table = StateTable(buckets=256, hit=25, miss=75, cached=200_000)
    assert table.cycles(0) == 0
    assert table.cycles(100_000) == pytest.approx(100_000 / 256 * 25)
    assert table.cycles(1_000_000) > 10 * table.cycles(100_000) * 2


@pytest.mark.parametrize(
    ("configured", "says"),
    [
        ({"entropie": True}, "'entropie', which 'model.features' does not know; did you mean 'entropy'?"),
        ({"entropy": 3}, "'configured.entropy' is 3; expected true or false"),
        ({"firewall": "nft"}, "'configured.firewall' is 'nft'; known: ipfw, pf, ipf"),
        ({"firewall": "pf", "rules": -1}, "'configured'"),
    ],
)
def test_what_the_model_does_not_know_is_refused(configured: Mapping[str, Scalar], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        router_model(box("freebsd_apu2"), "igb_tuned", configured=configured)
    assert says in str(caught.value)


def test_five_trials_spread_as_the_platform_says_and_as_its_seed_says() -> None:
    model = router_model(box("freebsd_dell_r630"), "cxgbe_tuned", configured={"firewall": "pf"})
    assert model.spread == 0.08
    assert router_model(box("freebsd_dell_r630"), "cxgbe_tuned").spread == 0.004
    assert router_model(read_platform(PROJECT.platforms, "netgate6100"), "vpp").spread == 0
