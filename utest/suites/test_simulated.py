"""The main job as a user runs it, everything it leaves, and what the router reports under load after a FAIL."""

from __future__ import annotations

import html
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import get_args

import pytest
from robot.api import ExecutionResult

from lineproof.evidence.run import read_run
from lineproof.evidence.run_files import check_integrity
from lineproof.testbed.settings import SimulatedNic
from support import robot_run
from support.served_bench import served

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def netgate(tmp_path_factory: pytest.TempPathFactory) -> robot_run.RobotRun:
    done = robot_run.run(tmp_path_factory.mktemp("netgate"), robot_run.ROOT / "tests" / "netgate6100.robot")
    assert done.status == 0 and robot_run.processes_of(done.folder) == [], done.console
    return done


@pytest.fixture
def left(netgate: robot_run.RobotRun) -> Path:
    (folder,) = (netgate.folder / "results").iterdir()
    return folder


def test_a_sentence_is_six_steps_that_pass_nothing_on_and_ends_with_its_picture(netgate: robot_run.RobotRun) -> None:
    suite = ExecutionResult(netgate.folder / "out" / "output.xml").suite
    assert len(suite.tests) == 9
    for test in suite.tests:
        (sentence,) = test.body
        *steps, picture, table = sentence.body
        assert [step.name for step in steps] == [
            "Read Sentence",
            "Judge In Trials",
            "Explain Verdict",
            "Keep Evidence",
            "Search For More",
            "Verdict Should Be As Expected",
        ]
        assert all(not step.assign and step.body.filter(messages=False) == [] for step in steps)
        assert picture.message.startswith("<img ") and "<table" in table.message


OBJECTS = r"\b[A-Z]\w+\(\w+=|<[\w.]+ object at|<lineproof|(?:Decimal|PosixPath|namespace)\(|: \[\]|\['"


def test_nothing_that_people_read_has_a_python_object(netgate: robot_run.RobotRun, left: Path) -> None:
    read = [netgate.folder / "out" / "output.xml", *(left / "allure").iterdir()]  # log.html is made of output.xml
    text = html.unescape("".join([netgate.console, *(path.read_text(encoding="utf-8") for path in read)]))
    assert re.findall(OBJECTS, text) == []


def test_the_console_says_each_result_once_in_80_columns(netgate: robot_run.RobotRun) -> None:
    promises = [line for line in netgate.console.splitlines() if " ≥ " in line]
    assert len(promises) == 9 and max(map(len, promises)) <= 79
    assert {re.sub("PASS: [^:]*: +", "", line) for line in promises} == {
        "lost 0 %",
        "forwarded ≥ 5.024 Mpps",
    }
    assert len({len(line.partition("lost 0 %")[0]) for line in promises[:-1]}) == 1, "the figures are aligned"
    (first, *_) = netgate.console.partition("PASS")
    assert "9 sentences: about " in first and "goal" not in first


def test_allure_has_few_small_files_of_a_test(left: Path) -> None:
    files = list((left / "allure").iterdir())
    assert len(list(left.iterdir())) <= 12 and len(files) <= 50
    assert all(path.stat().st_size < 100_000 for path in files)
    for path in files:
        if path.name.endswith("-result.json"):
            test = json.loads(path.read_text(encoding="utf-8"))
            (step,) = test["steps"]
            assert {item["name"]: item["value"] for item in test["parameters"]}["promised"] == step["name"]
            assert [item["type"] for item in test["attachments"]] == ["image/svg+xml", "text/html"]


CLICKS = """<script>
const attached = () => [...document.querySelectorAll("button")].filter(one => /Trials|rate$/.test(one.innerText));
setTimeout(() => attached().forEach(one => one.click()), 4000);
setTimeout(() => {
  const tables = [...document.querySelectorAll("iframe")].map(one => one.contentDocument.body.innerText);
  const pictures = [...document.images].map(one => `a picture of ${one.naturalWidth} x ${one.naturalHeight}`);
  document.body.innerText += [...tables, ...pictures].join(" ");
}, 8000);
</script></body>"""
"""Opens what is attached to a test, as a reader does, and adds what its frame and picture show to the page's text."""


def test_the_page_that_allure_makes_shows_a_test_with_what_is_attached(left: Path, tmp_path: Path) -> None:
    allure, there = ["npx", "--offline", "--yes"], all(map(shutil.which, ("npx", "chromium")))
    if not there or subprocess.run([*allure, "allure@3", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("this machine has no 'chromium', no 'npx', or no Allure for it (npx --yes allure@3 --version)")
    (documented,) = re.findall("^npx (.* generate .*)", (robot_run.ROOT / "docs" / "evidence.md").read_text(), re.M)
    generate = shlex.split(documented.replace("results/RUN", str(left)))
    subprocess.run([*allure, *generate], cwd=tmp_path, capture_output=True, check=True)
    index = tmp_path / "allure-report" / "index.html"
    index.write_text(index.read_text(encoding="utf-8").replace("</body>", CLICKS), encoding="utf-8")
    test = next(index.parent.glob("data/test-results/*.json"))
    # the page asks for a script from elsewhere
    options = ["--host-resolver-rules=MAP * ~NOTFOUND", "--allow-file-access-from-files", f"--user-data-dir={tmp_path}"]
    options += ["--headless", "--no-sandbox", "--virtual-time-budget=20000", "--dump-dom"]
    command = ["chromium", *options, f"{index.as_uri()}#{test.stem}"]
    page = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    text = re.sub(r"\s+", " ", html.unescape(re.sub("<(script|style).*?</\\1>|<.*?>", " ", page, flags=re.DOTALL)))
    sentence = re.escape(json.loads(test.read_text(encoding="utf-8"))["parameters"][0]["value"])
    assert re.search(f"Parameters .*promised {sentence} .*Test body .*{sentence} ", text)
    assert re.search(rf"PASS: {sentence} .* trial ports intended .* 1 0 → 1 [\d,]{{6}}.* a picture of 900 x 412", text)


@pytest.mark.parametrize("card", get_args(SimulatedNic))
def test_the_nine_sentences_have_the_same_verdicts_on_every_card(tmp_path: Path, card: str, left: Path) -> None:
    project = robot_run.project(tmp_path, "on_card", more=f"nic: {card}")
    suite = robot_run.ROOT / "tests" / "netgate6100.robot"
    done = robot_run.run(tmp_path, suite, "-v", f"PROJECT:{project}", "-v", "TESTBED:on_card")
    (run,) = (tmp_path / "results").iterdir()
    first, second = (
        [(one.test, one.verdict, one.message) for one in read_run(path).requirements] for path in (run, left)
    )
    assert first == second and "SIMULATED" in done.console
    log = (tmp_path / "out" / "output.xml").read_text(encoding="utf-8")
    assert "which lost frames do not explain" not in log


TESTS = """\
Passes
    64b 1-flow unidirectional ≥ 2% line rate

Fails
    64b 1-flow unidirectional ≥ 90% line rate
"""


def test_a_fail_is_followed_by_readings_at_its_load_and_at_one_that_passed(tmp_path: Path) -> None:
    suite = robot_run.write_tests(tmp_path, TESTS, "Open Testbed For    netgate6100    software=vpp    goal=quick")
    found = robot_run.run(tmp_path, suite)
    assert found.tests["Passes"][0] == "PASS", found.console
    assert found.tests["Fails"][1].startswith("FAIL: "), found.console
    (folder,) = (path.parent for path in tmp_path.rglob("environment.json"))
    facts = json.loads((folder / "environment.json").read_text(encoding="utf-8"))["router_facts"]
    assert (facts["workers"], facts["differences"]) == (3, [])
    assert {(row["queue"], row["worker"]) for row in facts["placement"]} == {
        (queue, f"vpp_wk_{queue}") for queue in range(3)
    }
    why = read_run(folder).requirements[1].why
    assert why is not None and why.load is not None
    busy = why.load
    # on a busy machine the readings may come after the traffic, and are no figures then
    if "all" not in busy.unread:
        assert (busy.workers[0].busy, busy.workers[1].packets_per_s) == (1.0, 0.0)
        assert busy.unread["flame graph"] == "neither 'perf --version' nor 'kldstat -q -m hwpmc' succeeds there"
    assert busy.forwarded_pps < 0.5 * busy.offered_pps
    said = [json.loads(line) for line in (folder / "telemetry.jsonl").read_text().splitlines()]
    assert {item["requirement"] for item in said if item["moment"] != "logs"} == {2}, "of the PASS nothing is kept"
    assert any("runtime" in command for item in said if item["moment"] == "under load" for command in item["texts"])
    log = "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("output.xml"))
    for moment in ("under load", "under load that passed"):
        assert f"The router {moment}: 64b 1-flow unidirectional" in log
    assert "vpp_wk_2" in log
    assert re.findall(OBJECTS, html.unescape(log)) == []
    # no trial of a verdict
    trials = (folder / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    of_fail = [trial for trial in map(json.loads, trials) if trial["requirement"] == 2]
    assert len(of_fail) <= 2
    integrity = check_integrity(folder)
    assert (integrity.altered, integrity.parsed()[1]) == ((), ())
    records = ("inputs", "readings", "requirements", "results", "telemetry", "trials")
    named = {"environment.json", "manifest.json", "summary.html", "allure", *(f"{name}.jsonl" for name in records)}
    assert {path.name for path in folder.iterdir()} == named


def test_a_secret_key_logs_in_for_sshlibrary_too_and_is_in_no_file(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    with served(tmp_path / "bench") as bench:
        home = bench.project(tmp_path)
        file = home / "variables" / "testbeds" / "lab.yaml"
        key = bench.router.key
        assert key is not None
        file.write_text(file.read_text().replace(f"key: {key}", "key_from: LAB_KEY"))
        text = key.read_text()
        held = tmp_path / "held.py"
        held.write_text(
            "from pathlib import Path\nfrom robot.api.types import Secret\n"
            f"def get_variables():\n    return {{'lab key': Secret(Path({str(key)!r}).read_text())}}\n"
        )
        suite = robot_run.write_suite(
            tmp_path,
            "Switch Connection    router",
            "${text}    ${rc} =    Execute Command    vppctl show version    return_rc=True    timeout=20 s",
            "Should Match Regexp    ${rc} ${text}    ^0 vpp v",
            "Close All Connections",
            "Run On Router    vppctl show version",
            "Run Keyword And Continue On Failure    Run On Router    vppctl show bogus",
            "Close Testbed",
            "Switch Connection    router",
            setup="Open Testbed For    netgate6100    software=vpp\nLibrary    SSHLibrary",
        )
        options = ("-v", f"PROJECT:{home}", "-v", "TESTBED:lab", "-v", "GOAL:quick", "--loglevel", "TRACE")
        done = robot_run.run(tmp_path, suite, *options, "-V", str(held), "--debugfile", "debug.txt")
        assert "VPP refused 'vppctl show bogus': show: unknown input `bogus'" in done.message, done.console
        assert "Non-existing index or alias 'router'." in done.message
        plain = robot_run.run(tmp_path, suite, *options, "-v", "LAB_KEY:hunter2")
        assert "'LAB_KEY', and ${LAB_KEY} is a variable that Robot writes into its logs" in plain.message
    lines = [line for line in text.splitlines() if not line.startswith("-----")]
    files = [path for name in ("out", "results") for path in (tmp_path / name).rglob("*") if path.is_file()]
    assert {"output.xml", "log.html", "debug.txt"} <= {path.name for path in files}
    for path in files:
        data = path.read_text(errors="replace")
        assert not [line for line in lines if line in data], path
