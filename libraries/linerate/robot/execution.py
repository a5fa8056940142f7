"""An execution of Robot: where it leaves its evidence, under one id, also where pabot runs its suites side by side."""

from __future__ import annotations

import os
import secrets
import shlex
from datetime import UTC, datetime
from pathlib import Path

from robot.libraries.BuiltIn import BuiltIn

from ..evidence.run import new_run_id
from ..files import write_whole

PABOT = "pabot_results"
"""Each process of pabot has a folder in this one as its output folder. pabot empties it when it starts."""

ID_FILE = "linerate-run-id"


def output_folder() -> Path:
    """The ``--outputdir`` that Robot or pabot was given; the current folder if none was."""
    output = Path(str(BuiltIn().get_variable_value("${OUTPUT DIR}")))
    shared = _pabot_folder(output)
    return output if shared is None else shared.parent


def execution_id() -> str:
    """A new run id; one for all processes of pabot."""
    new = new_run_id(datetime.now(UTC))
    shared = _pabot_folder(Path(str(BuiltIn().get_variable_value("${OUTPUT DIR}"))))
    return new if shared is None else _agreed(shared / ID_FILE, new)


def beside_others() -> bool:
    """Whether this is a process of pabot, which shares Allure's results and the summary with others."""
    return BuiltIn().get_variable_value("${PABOTQUEUEINDEX}") is not None


def _pabot_folder(output: Path) -> Path | None:
    if not beside_others():
        return None
    return next((folder for folder in output.parents if folder.name == PABOT), None)


def _agreed(path: Path, proposal: str) -> str:
    """What the first process wrote to *path*: its own *proposal*."""
    own = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    write_whole(own, proposal)
    try:
        os.link(own, path)  # whole or not at all, and only once
    except FileExistsError:
        return path.read_text(encoding="utf-8")
    finally:
        own.unlink(missing_ok=True)
    return proposal


def summary_words(execution: Path, lines: str) -> str:
    """The last words on the console: each suite's folder, and how to make the report. Empty if nothing was left."""
    words = f"\nEvidence:\n{lines}" if lines else ""
    allure = execution / "allure"
    if any(allure.glob("*-result.json")):
        if not lines:
            return "\nNothing was measured: no testbed's set-up was completed.\n"
        paths = (allure, allure / "allurerc.json", execution / "report")
        results, config, report = (shlex.quote(_short(path)) for path in paths)
        words += f"Next: npx allure@3 generate {results} --config {config} --output {report}\n"
    return words


def _short(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
