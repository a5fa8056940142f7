"""The picture of a search, also without an end, and a table; the others: ``suites/test_characterisation.py``."""

import xml.etree.ElementTree as ElementTree

import pytest

from lineproof.core.goal import Goal
from lineproof.core.trial import Load
from lineproof.evidence import characterisation as shown
from lineproof.evidence import rfc2544_report as report
from lineproof.methods.rfc2544.back_to_back import back_to_back
from lineproof.methods.search import search
from lineproof.methods.trials import CharacterisationTerms, Deadline
from support.pure_router import LINE, PureRouter

GOAL = Goal(goal="test", final_trial_duration=1, duration_sum=2, loss_ratio=0, exceed_ratio=0, about="for these tests")
LINK = 10e9


def words(svg):
    return " ".join("".join(item.itertext()).strip() for item in ElementTree.fromstring(svg).iter() if item.text)


def searched(**deadline):
    return search(
        PureRouter(5e6), GOAL, Load(LINE / 1000), Load(LINE), CharacterisationTerms(deadline=Deadline(**deadline))
    )


@pytest.mark.parametrize("deadline", [{}, {"traffic": 3}, {"traffic": 0}], ids=["whole", "unfinished", "nothing"])
def test_a_picture_is_marked_and_the_same_each_time(deadline):
    marked, plain = (shown.search_plot(searched(**deadline), "T", simulated) for simulated in (True, False))
    assert "SIMULATED" in words(marked) and "SIMULATED" not in words(plain)
    assert marked == shown.search_plot(searched(**deadline), "T", True)


def test_a_burst_that_lost_nothing_is_a_bound():
    router = PureRouter(LINE / 2, buffer=1000)
    text = report.back_to_back_table(
        [
            back_to_back(router.send_burst, 64, LINE, LINE / 2, CharacterisationTerms(), repeats=2),
            back_to_back(PureRouter(LINE).send_burst, 64, LINE, LINE / 2, CharacterisationTerms(), longest=500),
        ],
        "Bursts",
    ).text()
    assert "1,999.0" in text or "2,000.0" in text
    assert "≥ 500" in text
