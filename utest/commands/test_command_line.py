"""The command line as a shell and other programs use it, also where an environment lacks something."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lineproof.ceilings import read_calibration
from lineproof.commands.main import BENCH_COMMANDS, COMMANDS
from lineproof.errors import TestbedError
from lineproof.procedures import calibrate
from lineproof.procedures.calibrate import find_ceiling
from lineproof.project import Project
from lineproof.session.plan import Plan
from support import robot_run
from support.command_line import PROGRAM, environment, lineproof
from support.paths import ROOT, VARIABLES
from support.simulated_session import started
from support.surface import surface

pytestmark = pytest.mark.slow

DOCS = ROOT / "docs" / "command-line.md"


def test_the_document_has_every_command() -> None:
    rows = re.findall(r"^\| `lineproof (\w+)", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    every = [*COMMANDS, *BENCH_COMMANDS]
    assert [f"docs/command-line.md lacks `lineproof {name}`" for name in every if name not in rows] == []
    assert rows == every


def test_one_page_has_everything_that_a_user_can_write() -> None:
    lines = [*surface()]
    assert {"- `platform` (needed)", "- `kind` (needed)", "        - `step`", "- `TESTBED`"} <= {*lines}
    assert all(any(line.startswith(f"- `lineproof {name}`: ") for line in lines) for name in COMMANDS)


@pytest.mark.parametrize(
    "words",
    [["--help"], ["check", "--help"], ["check"], ["study"], ["doctor", "simulated", "--platform", "netgate6100"]],
)
def test_nobody_reads_the_output(words: list[str], tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [*PROGRAM, *words], cwd=tmp_path, env=environment(tmp_path), stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    _, errors = process.communicate(timeout=90)
    # argparse itself ignores that nobody reads its help, unless Python keeps it in a buffer
    assert process.returncode in ((0, 141) if "--help" in words else (141,)) and errors == ""
    assert robot_run.processes_of(tmp_path) == []


def test_output_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    for shell, status, errors in (
        (">/dev/full", 2, "lineproof: the output cannot be written: No space left on device\n"),
        (">&-", 1, ""),
    ):
        done = subprocess.run(
            f"{shlex.join(PROGRAM)} check {shell}",
            shell=True,
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert (done.returncode, done.stderr) == (status, errors)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("lineproof d", {"doctor"}),
        ("lineproof doctor simulated --platform netg", {"netgate6100"}),
        ("lineproof init --platform exam", {"examplebox"}),
    ],
)
def test_completion(line: str, offered: set[str], tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    completing = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    done = lineproof(tmp_path, variables=completing)
    assert done.stderr == ""
    assert {word.strip() for word in answer.read_text().split("\013")} == offered


def test_measure_leaves_a_matrix_of_what_is_carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    options = ("--frames", "64b imix", "--flows", "1-flow", "--directions", "unidirectional")
    project = "--project", str(ROOT), "--results", str(tmp_path / "results")
    done = lineproof(tmp_path, "measure", "simulated", "--platform", "netgate6100", *options, *project)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = r"(?:≥ )?([\d.]+)(?: to [\d.]+)? Mpps +([\d.]+) +([\d.]+) "
    rows = re.findall(rf"^(64b|imix) 1-flow unidirectional +{figures}", done.stdout, re.MULTILINE)
    (small, *of_small), (mix, *of_mix) = rows
    assert (small, mix) == ("64b", "imix") and float(of_small[0]) > float(of_mix[0]) > 1
    mpps, gigabits, percent = map(float, of_small)
    assert gigabits == pytest.approx(mpps * 0.672, rel=1e-3) == pytest.approx(percent / 10, rel=1e-2)
    assert "SIMULATED" in done.stdout
    (kept,) = (tmp_path / "results").glob("*/results.jsonl")
    assert json.loads(kept.read_text().partition("\n")[0])["method"] == "search over traffic"


RAW = re.compile(r"Traceback|\[Errno|\b[A-Z][a-z]\w*Error\b")
CALL = shlex.join(PROGRAM)


def shell(folder: Path, script: str) -> tuple[int, str]:
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=100,
        check=False,
    )
    text = done.stdout.decode(errors="replace")
    assert not RAW.search(text), text
    return done.returncode, text


@pytest.mark.parametrize(
    ("script", "status", "says"),
    [
        (f"env -u HOME -u USER -u LOGNAME XDG_RUNTIME_DIR=/none TMPDIR=/none {CALL} check", 1, "there is no suite"),
        (f"LC_ALL=C PYTHONUTF8=0 PYTHONIOENCODING=ascii {CALL} gate ≥", 2, "is no run"),
        (f"ulimit -n 8; {CALL} doctor simulated --platform netgate6100", 1, "Too many open files; raise the limit"),
        (f"ulimit -f 0; {CALL} init mybox 2>&1 | cat", 0, "raise the limit of a file's size ('ulimit -f')"),
        (f"{CALL} serve --platform netgate6100 --rpc-port 70000", 2, "'70000' is no TCP port; expected 0 to 65535"),
        (f"mkfifo run; {CALL} rejudge run", 2, "'run' is no run"),
        (f"mkdir run; mkfifo run/trials.jsonl; {CALL} gate run", 2, "run/trials.jsonl: is no regular file"),
    ],
)
def test_a_command_in_an_odd_environment(script: str, status: int, says: str, tmp_path: Path) -> None:
    ended, text = shell(tmp_path, script)
    assert says in text
    assert ended == status


def test_python_m_forgets_the_current_folder_as_soon_as_this_package_begins(tmp_path: Path) -> None:
    """Imports of Python itself before that are beyond it: ``importlib``, ``warnings``."""
    for name in ("argparse", "random", "json", "yaml", "typing"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('from the current folder')")
    assert shell(tmp_path, f"{CALL} --version")[0] == 0


# -- ``lineproof check`` of projects, whose problems are in the golden documents; ``calibrate`` knows the generator


def check(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return lineproof(folder, "check", *words)


def test_a_platform_that_no_simulation_has_and_a_project_without_suites_are_named(tmp_path: Path) -> None:
    assert lineproof(tmp_path, "init", "mybox").returncode == 0
    platform = tmp_path / "variables" / "platforms" / "mybox.yaml"
    platform.write_text(re.sub("shell: .*", "shell: none", platform.read_text()))
    done = check(tmp_path)
    assert done.returncode == 1 and "'shell: none' is hardware" in done.stdout
    (tmp_path / "tests" / "mybox.robot").unlink()
    without = check(tmp_path)
    assert without.returncode == 1 and f"{tmp_path / 'tests'}: there is no suite" in without.stdout


def test_files_and_words_that_hide_shipped_ones_are_named(tmp_path: Path) -> None:
    own = {
        "goals/standard.yaml": (VARIABLES / "goals/standard.yaml").read_text() + "# mine\n",
        "goals/quick.yaml": (VARIABLES / "goals/quick.yaml").read_text(),
        "generators/virtual.yaml": (VARIABLES / "generators/virtual.yaml").read_text() + "# mine\n",
        "profiles/own.yaml": "entries:\n"
        "- {kind: mix, name: imix, frames: [{size: 64, weight: 1}], about: x}\n"
        "- {kind: mix, name: mine, frames: [{size: 64, weight: 1}], about: x}\n",
    }
    for file, text in own.items():
        path = tmp_path / "variables" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    goal, profile, card, *others = check(tmp_path).stdout.splitlines()
    assert others[-1] == "1 problem in 4 files and 0 suites"
    for line, name in ((goal, "goals/standard"), (profile, "profiles/own"), (card, "generators/virtual")):
        assert line.startswith(f"warning: {tmp_path / 'variables' / name}.yaml: ")
    assert "promise of goal 'standard'" in goal and "'imix' takes the place" in profile


def test_a_problem_of_a_file_that_a_suite_reads_is_printed_once(tmp_path: Path) -> None:
    home = robot_run.project(tmp_path)
    (home / "variables" / "platforms" / "mine.yaml").write_text("platform: yours\n", encoding="utf-8")
    suite = robot_run.write_suite(
        tmp_path, "64b unidirectional ≥ 1 Mpps", setup="Open Testbed For    mine    software=vpp"
    )
    done = lineproof(tmp_path, "check", "--project", str(home), str(suite), "-v", f"PROJECT:{home}")
    assert done.returncode == 1 and done.stdout.count("mine.yaml") == 3, done.stdout + done.stderr
    assert "3 problems in " in done.stdout


TESTS = """\
Above
    64b bidirectional ≥ 96.5% line rate each way
Below
    64b bidirectional ≥ 90% line rate each way
"""


def test_verdicts_near_the_ceiling_are_inconclusive_and_others_stay(tmp_path: Path):
    folder = tmp_path / "calibrations"
    measured = ("simulated", "--platform", "netgate6100", "--bidirectional", "--traffic", "64b", "1514b")
    options = ("--goal", "quick", "--calibrations", str(folder))
    done = lineproof(tmp_path, "calibrate", *measured, *options, cwd=robot_run.ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    known = read_calibration(folder, "simulated", "netgate6100")
    assert known is not None
    assert [(ceiling.traffic, ceiling.bidirectional) for ceiling in known.ceilings] == [("64b", True), ("1514b", True)]
    assert all(ceiling.latency is not None for ceiling in known.ceilings)
    watched = [ceiling.watched for ceiling in known.ceilings if ceiling.watched is not None]
    assert [(watch.trials, watch.lossy, watch.most_lost) for watch in watched] == [(20, 0, 0)] * 2

    suite = robot_run.write_tests(tmp_path, TESTS, "Open Testbed For    netgate6100    software=vpp    goal=quick")
    ran = robot_run.run(tmp_path, suite, "-v", f"CALIBRATIONS:{folder}")
    messages = {name: message for name, (_, message) in ran.tests.items()}
    assert messages["Above"].startswith("INCONCLUSIVE: ")
    assert "calibrated on 20" in messages["Above"]
    assert messages["Below"].startswith("FAIL: ") and "calibrated" not in messages["Below"]

    (run,) = (tmp_path / "results").iterdir()
    records = [json.loads(line) for line in (run / "requirements.jsonl").read_text().splitlines()]
    applied = {record["test"]: record["own_part"] for record in records}
    assert applied["Above"]["lossless_pps"] == known.ceilings[0].lossless_pps
    assert "calibration simulated-netgate6100.yaml of 20" in (tmp_path / "out" / "output.xml").read_text()
    assert robot_run.processes_of(tmp_path) == []


def test_a_ceiling_that_is_not_found_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = iter([TestbedError("nothing is offered")])

    def find_the_second(*terms: Any) -> Mapping[str, float]:
        for error in failing:
            raise error
        return find_ceiling(*terms)

    monkeypatch.setattr(calibrate, "find_ceiling", find_the_second)
    plan = Plan.read(Project.find(ROOT), "netgate6100", None, "simulated", "quick", tmp_path)
    profiles = [plan.catalogue.profile([traffic]) for traffic in ("imix", "1514b")]
    with pytest.raises(TestbedError, match=r"1 of 2 ceilings .*: imix unidirectional: nothing is offered \(CPU steal"):
        calibrate.calibrate(plan, profiles, [False], 1, 0.2, tmp_path, print)
    known = read_calibration(tmp_path, "simulated", "netgate6100")
    assert known is not None and [ceiling.traffic for ceiling in known.ceilings] == ["1514b"]


def test_a_router_that_is_not_bypassed_is_refused(tmp_path: Path):
    with started(tmp_path) as session:
        session.generator.connect()
        with pytest.raises(TestbedError, match="connect the generator's two ports to each other"):
            calibrate._check_bypassed(session)
        session.router.connect()
        session.router.configure()
        with pytest.raises(TestbedError, match="a router is still between the generator's ports: "):
            calibrate._check_bypassed(session)


def test_an_interrupt_keeps_what_was_measured(tmp_path: Path):
    command = ("calibrate", "simulated", "--platform", "netgate6100", "--duration", "30")
    with subprocess.Popen(
        [*PROGRAM, *command, "--calibrations", str(tmp_path / "calibrations")],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(tmp_path),
        cwd=robot_run.ROOT,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("64b unidirectional: "):
                process.send_signal(signal.SIGTERM)
                break
        rest, _ = process.communicate(timeout=240)
    assert process.returncode == 130
    assert "kept in" in rest
    known = read_calibration(tmp_path / "calibrations", "simulated", "netgate6100")
    assert known is not None
    assert [ceiling.traffic for ceiling in known.ceilings] == ["64b"]
    assert robot_run.processes_of(tmp_path) == []
