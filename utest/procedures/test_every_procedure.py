"""Contract of each procedure that is registered: its example, its record and page, and each way of ending early."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lineproof.core.trial import Fault, Problem
from lineproof.documents.document import Document, Section, as_markdown, as_page, as_text
from lineproof.errors import SentenceError
from lineproof.evidence.records import CharacterisationRecord
from lineproof.evidence.run import read_run
from lineproof.procedures.procedure import Procedure, ProcedureRun, json_data, procedures
from lineproof.procedures.search import SEARCH
from lineproof.session.session import Session
from lineproof.simulation import parse_fault
from support import robot_run
from support.pure_router import EVERY_TRIAL, ONE_WAY, PureRouter, at_throughput, run_on
from support.simulated_session import opened

THROUGHPUTS = [at_throughput(4e6)]
FOUND = SEARCH.measure(run_on(PureRouter()), ONE_WAY)
TERMS: dict[str, tuple[Any, ...]] = {
    "Search Throughput Of": (ONE_WAY,),
    "Latency Under Load Of": (ONE_WAY, FOUND),
    "Ramp": (ONE_WAY, 5),
    "RFC 2544 Throughput Of": ("unidirectional", 64, 1518),
    "RFC 2544 Latency Of": ("unidirectional", THROUGHPUTS),
    "Frame Loss Rate Of": (ONE_WAY,),
    "Back To Back Of": ("unidirectional", THROUGHPUTS),
    "System Recovery Of": ("unidirectional", THROUGHPUTS),
    "Reset Time Of": ("unidirectional", THROUGHPUTS),
    "Send Traffic": (ONE_WAY, "1 Mpps"),
}
EACH = pytest.mark.parametrize("procedure", procedures(), ids=lambda procedure: procedure.keyword)
FORMS = as_text, as_markdown, as_page


def ended(procedure: Procedure, router: PureRouter, deadline: float = math.inf) -> tuple[list[str], str]:
    """Return how each result ended, and the document of all; it can be drawn, and kept as a record."""
    run = run_on(router, deadline, lag=3.0, outage=3.0)
    run.name, run.words = procedure.name, ONE_WAY
    result = procedure.measure(run, *TERMS[procedure.keyword])
    results = result if isinstance(result, tuple) else (result,)
    assert json_data(result) and isinstance(procedure.picture(run, results), str) and run.sent <= deadline
    text = as_markdown(Document("", [Section("Result", procedure.parts(run, results))]))
    return [each.ended for each in results], text


@EACH
def test_what_was_not_begun_is_inconclusive(procedure: Procedure) -> None:
    endings, text = ended(procedure, PureRouter(), deadline=0.0)
    assert endings and all(words.startswith("inconclusive: nothing was tried; deadline: ") for words in endings)
    assert "nothing was tried" in text


LIES: dict[str, dict[str, Any]] = {
    "a link was down": {"burst": EVERY_TRIAL},
    "counters began anew": {"spoilt_by": Problem(Fault.COUNTERS, "opackets fell")},
    "frames came back changed": {"spoilt_by": Problem(Fault.CHANGED, "200", 1e6), "changed": 200},
    "lost frames are hidden": {"spoilt_by": Problem(Fault.COPIES, "twice")},
    "the generator is gone": {"breaks": 0},
}


@EACH
@pytest.mark.parametrize("lie", LIES)
def test_a_testbed_at_fault_is_named_and_no_result(procedure: Procedure, lie: str) -> None:
    endings, _ = ended(procedure, PureRouter(buffer=1000, spoils=EVERY_TRIAL, **LIES[lie]))
    assert [words for words in endings if not words.startswith("inconclusive: ")] == []


@pytest.fixture(scope="module", params=["copies", "ttl"])
def lying(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Session, str]]:
    """A session whose router sends others in the place of one of twenty frames."""
    with opened(tmp_path_factory.mktemp(request.param)) as session:
        yield session, request.param


@pytest.mark.slow
@EACH
def test_frames_in_the_place_of_lost_ones_are_no_result(procedure: Procedure, lying: tuple[Session, str]) -> None:
    session, what = lying
    # it lasts about a minute on this clock
    session.cause_fault(parse_fault("changed frames", start=0, what=what, share=0.05))
    result = procedure.measure(ProcedureRun(session), *TERMS[procedure.keyword])
    endings = [each.ended for each in (result if isinstance(result, tuple) else (result,))]
    assert endings and [words for words in endings if not words.startswith("inconclusive: ")] == []


@EACH
def test_no_procedure_takes_longer_than_it_said_at_its_beginning(procedure: Procedure) -> None:
    run, told = run_on(PureRouter(buffer=1000), lag=3.0, outage=3.0), list[tuple[int, float]]()
    run.announce = lambda *longest: told.append(longest)  # type: ignore[method-assign]
    result = procedure.measure(run, *TERMS[procedure.keyword])
    trials = [trial for each in (result if isinstance(result, tuple) else (result,)) for trial in each.trials]
    assert all(len(trials) <= count and run.sent <= traffic + 1e-6 for count, traffic in told)
    # the others send few trials, or search until a deadline
    searches = "Search", "Send", "Latency", "RFC 2544 Throughput"
    assert bool(told) is not procedure.keyword.startswith(searches)


TAKING = ["Latency Under Load Of", *(name for name, terms in TERMS.items() if terms[-1] is THROUGHPUTS)]


@pytest.mark.parametrize("keyword", TAKING)
def test_a_result_of_other_traffic_or_of_another_keyword_is_refused(keyword: str) -> None:
    (procedure,) = (one for one in procedures() if one.keyword == keyword)
    traffic, result = TERMS[keyword]
    router = PureRouter()
    for terms in ((traffic.replace("uni", "bi"), result), (traffic, None if result is FOUND else [FOUND])):
        with pytest.raises(SentenceError, match="expected"):
            procedure.measure(run_on(router), *terms)
    assert not router.asked


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> robot_run.RobotRun:
    """A run of all examples, in the order in which later ones take what earlier ones found."""
    folder = tmp_path_factory.mktemp("examples")
    # a busy machine must have the time to read the counts after a change of load
    testbed = robot_run.project(folder) / "variables" / "testbeds" / "simulated.yaml"
    testbed.write_text(testbed.read_text(encoding="utf-8").replace("clock_speed: 50", "clock_speed: 20"))
    documented = "\n".join(procedure.measure.__doc__ or "" for procedure in procedures())
    # a simulated router restarts without a command
    examples = documented.replace("command=sudo reboot", "").splitlines()
    lines = [line.strip("| ") for line in examples if line.lstrip().startswith("| ")]
    own = "*** Keywords ***\nSet Receive Queues\n    [Arguments]    ${number}\n    Log    ${number}\n"
    tests = "".join(["Examples\n", *(f"    {line}\n" for line in lines), "\n", own])
    suite = robot_run.write_tests(folder, tests, "Open Testbed For    netgate6100    software=vpp    goal=quick")
    return robot_run.run(folder, suite, "-v", f"PROJECT:{folder / 'project'}")


@pytest.mark.slow
def test_each_example_gives_a_record_a_document_and_a_section_of_the_page(examples: robot_run.RobotRun) -> None:
    ((status, message),) = examples.tests.values()
    assert status == "PASS", message
    (folder,) = Path(examples.folder / "results").iterdir()
    records = [record for record in read_run(folder).results if isinstance(record, CharacterisationRecord)]
    names = {record.method for record in records}
    assert [each.name for each in procedures() if not any(name.startswith(each.name) for name in names)] == []
    page = (folder / "summary.html").read_text(encoding="utf-8")
    for record in records:
        document = Document(record.method, [Section("Result", record.shown)], record.simulated)
        assert [form.__name__ for form in FORMS if not form(document)] == [] and record.result is not None
        assert html.escape(f"{record.test}: {record.method} of {record.sentence}") in page


@pytest.mark.slow
def test_the_page_reads_a_ramp_by_its_own_script_alone(examples: robot_run.RobotRun) -> None:
    text = next((examples.folder / "results").glob("*/summary.html")).read_text(encoding="utf-8")
    (script,) = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert "default-src 'none'; " in text and f"; script-src 'sha256-{digest}'" in text and "dataset.ramp" in script
    seconds = json.loads(html.unescape(re.findall('data-ramp="(.*?)"', text)[0]))
    assert seconds["0"].keys() == {"phase", "0", "1"}
