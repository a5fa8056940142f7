"""The rows that studies measure on the simulated testbed: of each variant its value, change and published figure.

Left out: studies that have another testbed, the id of the run, digits after the fourth (the moment of sending decides
about a frame), and after the second of figures that are read while frames are sent, at moments of real time.
Of each study one block with goal ``quick``, as all blocks would take an hour of CPU: each value is a single one.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from golden.runs import scratch
from lineproof.documents.document import as_csv
from lineproof.studies.forms import document
from lineproof.studies.results import read_results
from support.command_line import PROGRAM, environment
from support.paths import ROOT, VARIABLES
from support.robot_run import programs

READ_WHILE_SENDING = ("cycles/packet", "packets/call")
"""Units of such figures."""

SHORTEST = "freebsd_before_after"
"""The study that takes least."""


def texts() -> dict[str, str]:
    """Return the rows of each study, by file name."""
    return {f"{name}.csv": rows(run_of(name)) for name in names()}


def names() -> list[str]:
    """Return the studies of the simulated testbed."""
    files = sorted((VARIABLES / "studies").glob("*.yaml"))
    return [path.stem for path in files if "testbed" not in yaml.safe_load(path.read_text(encoding="utf-8"))]


def run_of(name: str) -> Path:
    """Return the folder that the run of a study left. It runs once in each process.

    Raises RuntimeError if there is not one run.
    """
    folder = scratch() / name
    said = ""
    if not folder.exists():
        folder.mkdir()
        options = ("--goal", "quick", "--repeats", "1", "--results", str(folder / "results"))
        done = programs().run([PROGRAM[-1], "study", "run", name, *options], environment(folder), ROOT, limit=3600)
        said = f"\n{done.stdout}{done.stderr}"
    made = [path.parent for path in (folder / "results").glob("*/study.html")]
    if len(made) != 1:
        raise RuntimeError(f"{name}: expected one run, not {len(made)}{said}")
    return made[0]


def rows(run: Path) -> str:
    """Return the table of a study's run, without its id."""
    text = as_csv(document(read_results(run))).replace("\r\n", "\n")
    text = text.replace(f",{run.name},", ",").replace(",run,", ",", 1)
    lines = text.splitlines(keepends=True)
    return "".join(_rounded(line, 2 if any(unit in line for unit in READ_WHILE_SENDING) else 4) for line in lines)


def _rounded(line: str, digits: int) -> str:
    return re.sub(r"(?<=,)-?\d+\.?\d*(e[+-]\d+)?(?=[,\n])", lambda number: f"{float(number[0]):.{digits}g}", line)
