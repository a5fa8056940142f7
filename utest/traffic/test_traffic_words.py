"""Traffic without a threshold: the words of a sentence's left side."""

import pytest

from lineproof.errors import SentenceError
from lineproof.project import Layers
from lineproof.sla.sentence import parse_traffic
from lineproof.traffic.catalogue import Catalogue
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


def test_words_of_a_project_take_the_place_of_packaged_ones_whatever_the_files_are_called(tmp_path):
    own = tmp_path / "profiles"
    own.mkdir()
    text = (PROJECT.profiles.own / "bench.yaml").read_text(encoding="utf-8")
    (own / "mine.yaml").write_text(text.replace("16.0.0.4", "16.0.0.7"), encoding="utf-8")
    found = Catalogue.read(Layers(own, PROJECT.profiles.packaged))
    assert found.profile(["64b"]).flows.source.first == "16.0.0.7"
    assert set(CATALOGUE.words()) == set(found.words())
    # a default of the project's own, under a name of its own
    (own / "mine.yaml").write_text(
        "entries:\n  - {kind: flows, name: mine, default: true, about: mine, source: {first: 16.0.0.9, last: 16.0.0.9},"
        " destination: {first: 48.0.0.9, last: 48.0.0.9}}\n",
        encoding="utf-8",
    )
    found = Catalogue.read(Layers(own, PROJECT.profiles.packaged))
    assert found.profile(["64b"]).flows.source.first == "16.0.0.9"
    assert found.profile(["64b", "var2"]).flows.source.first == "16.0.0.4"
