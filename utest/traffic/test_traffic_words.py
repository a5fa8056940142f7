"""Traffic without a threshold: the words of a sentence's left side."""

import pytest

from linerate.errors import SentenceError
from linerate.sla.sentence import parse_traffic
from linerate.traffic.catalogue import Catalogue
from support.model_bench import PROJECT

CATALOGUE = Catalogue.read(PROJECT.profiles)


def test_traffic_and_direction_are_understood():
    found = parse_traffic("  64b   1-flow  bidirectional", CATALOGUE)
    assert found.sentence == "64b 1-flow bidirectional"
    assert found.profile.name == "64b 1-flow" and found.bidirectional
    assert not parse_traffic("imix unidirectional", CATALOGUE).bidirectional
    assert not parse_traffic("64b 1-flow", CATALOGUE).bidirectional


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("64b", "says no direction"),
        ("unidirectional", "no frame size"),
        ("64b unidirectional ≥ 5 Mpps", "expected traffic alone, as '64b unidirectional'"),
        ("64b unidirectional loses", "'loses' belongs to a sentence"),
        ("64b unidirectionl", "did you mean 'unidirectional'"),
        ("", "no frame size"),
    ],
)
def test_what_is_not_traffic_is_refused_with_what_is_expected(words, says):
    with pytest.raises(SentenceError, match=f"'{words}'.*{says}"):
        parse_traffic(words, CATALOGUE)
