"""The Toeplitz hash against Microsoft's published verification vectors."""

from __future__ import annotations

import pytest

from lineproof_bench.backend import FieldVariable, StreamTraffic
from lineproof_bench.model.flows import spread
from lineproof_bench.model.forwarding import Toeplitz, queue_of
from lineproof_bench.model.schema import Rss
from support.model_bench import address, traffic

# source, port, destination, port, hash with ports, hash without; Microsoft, "Verifying the RSS Hash Calculation"
VECTORS = [
    ("66.9.149.187", 2794, "161.142.100.80", 1766, 0x51CCC178, 0x323E8FC2),
    ("199.92.111.2", 14230, "65.69.140.83", 4739, 0xC626B0EA, 0xD718262A),
    ("24.19.198.95", 12898, "12.22.207.184", 38024, 0x5C2B394A, 0xD2D0A5DE),
    ("38.27.205.30", 48228, "209.142.163.6", 2217, 0xAFC7327F, 0x82989176),
    ("153.39.163.191", 44251, "202.188.127.2", 1303, 0x10E828A2, 0x5D1809C5),
]


@pytest.mark.parametrize(("source", "sport", "destination", "dport", "four", "two"), VECTORS)
def test_verification_vectors(source: str, sport: int, destination: str, dport: int, four: int, two: int) -> None:
    hasher = Toeplitz(Rss(key="microsoft").key_bytes)
    addresses = address(source) + address(destination)
    assert hasher.hash(addresses + sport.to_bytes(2, "big") + dport.to_bytes(2, "big")) == four
    assert hasher.hash(addresses) == two


def test_every_queue_of_the_table_is_used() -> None:
    assert {queue_of(value, 512, 3) for value in range(512)} == {0, 1, 2}
    assert queue_of(512, 512, 3) == 0


def test_an_invalid_key_is_refused_with_the_expected_form() -> None:
    with pytest.raises(ValueError, match="mlx5 or 80 hexadecimal digits"):
        Rss(key="micro")


def test_random_addresses_spread_evenly_over_many_flows_and_queues() -> None:
    frame = traffic("64b", 1.0)[0].frame
    wide = FieldVariable(26, 4, 0x10000000, 0x10FFFFFF, 0x10000000, operation="random")
    found = spread(StreamTraffic(1, frame, 1.0, (wide,)))
    assert sum(found.values()) == pytest.approx(1)
    assert len(found) > 4000
    hasher = Toeplitz(Rss(key="microsoft").key_bytes)
    shares = [0.0] * 4
    for flow, share in found.items():
        assert flow
        shares[queue_of(hasher.hash(flow.hashed), 512, 4)] += share
    assert shares == pytest.approx([0.25] * 4, abs=0.03)


def test_the_251_flows_of_the_bench_profile_are_found() -> None:
    found = spread(traffic("64b", 1.0)[0])
    assert len(found) == 251
    assert {flow.destination for flow in found if flow} == set(range(0x30000004, 0x300000FF))
