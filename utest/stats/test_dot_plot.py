"""The picture of ministat(1), and several tests at once."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.stats import compare, dot_plot, holm_levels
from support.paths import DATA

PICTURES = yaml.safe_load((DATA / "ministat" / "pictures.yaml").read_text(encoding="utf-8"))
SAMPLES = yaml.safe_load((DATA / "ministat" / "debian.yaml").read_text(encoding="utf-8"))

figures = st.lists(st.integers(-(10**6), 10**6).map(lambda number: number / 100), min_size=2, max_size=20)


@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_is_ministats(name: str):
    assert dot_plot(SAMPLES[name]["x"], SAMPLES[name]["y"]) == PICTURES[name].rstrip("\n")


def test_without_any_spread_there_is_no_plot():
    assert dot_plot([5.0, 5.0], [5.0, 5.0]) == "[no plot, span is zero width]"


@given(figures, figures)
@settings(max_examples=50, deadline=None)
def test_every_figure_is_in_the_picture(x: list[float], y: list[float]):
    lines = dot_plot(x, y).splitlines()
    if len(lines) > 1:
        assert {len(line) for line in lines} == {76}
        drawn = "".join(lines[1:-3])
        assert drawn.count("x") + drawn.count("*") == len(x)
        assert drawn.count("+") + drawn.count("*") == len(y)


def test_holms_levels_are_those_of_his_example():
    # ordered p: 0.005, 0.01, 0.03, 0.04 at 5 %: the first two are rejected
    assert holm_levels([0.01, 0.04, 0.03, 0.005], 0.05) == pytest.approx([0.05 / 3, 0.025, 0.025, 0.0125])
    assert holm_levels([], 0.05) == []


def test_a_change_and_its_p_value_say_the_same():
    found = compare([10.0, 10.1, 9.9, 10.05], [9.7, 9.75, 9.8, 9.6]).relative_to()
    low, high = found.interval(1 - found.p)
    assert high == pytest.approx(0, abs=1e-9) and low < found.change < 0
    allowed = compare([10.0, 10.1, 9.9, 10.05], [9.7, 9.75, 9.8, 9.6]).relative_to(allowed=0.01)
    assert allowed.p > found.p
    assert allowed.interval(1 - allowed.p)[1] == pytest.approx(-0.01)


def test_a_change_can_be_related_to_another_number():
    none_lost, some = [0.0, 0.0, 0.0], [0.2, 0.3, 0.1]
    assert compare(none_lost, some).relative_to(2.0).change == pytest.approx(0.1)
    with pytest.raises(ZeroDivisionError):
        compare(none_lost, some).relative_to()
