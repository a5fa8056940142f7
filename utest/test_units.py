import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.units import Layer, Rate, apart, bits, line_rate_pps, parse_link_speed, si


@pytest.mark.parametrize(
    ("number", "promised", "shown"),
    [(5.0004, 5, 5.0004), (4.99996, 5, 4.99996), (5.00021, 5.0002, 5.00021), (7.12345, 5, 7.123), (5 + 1e-12, 5, 5)],
)
def test_a_near_miss_is_not_shown_as_what_was_promised(number: float, promised: float, shown: float):
    assert apart(number, promised) == shown


@given(st.floats(1, 1e11))
def test_si_keeps_four_digits(value: float):
    number, unit = si(value, "x").split()
    factor = {"x": 1, "kx": 1e3, "Mx": 1e6, "Gx": 1e9}[unit]
    assert float(number) * factor == pytest.approx(value, rel=1e-3)


@given(st.floats(64, 9216), st.floats(1e6, 4e11))
def test_line_rate_is_100_per_cent_and_20_bytes_more_on_l1(size: float, link: float):
    rate = Rate(line_rate_pps(link, size), size, link)
    assert rate.percent == pytest.approx(100)
    assert rate.l2_bps < rate.l1_bps == pytest.approx(link)
    assert bits(size, Layer.L1) - bits(size, Layer.L2) == pytest.approx(160)


@pytest.mark.parametrize(("text", "bps"), [("10 Gbps", 1e10), ("2.5 Gbit/s", 2.5e9), ("100Mbps", 1e8)])
def test_link_speeds_are_parsed(text: str, bps: float):
    assert parse_link_speed(text) == bps
