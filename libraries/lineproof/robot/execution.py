"""An execution of Robot: where it leaves its evidence, and its last words."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from robot.libraries.BuiltIn import BuiltIn

from ..errors import BREAKDOWN_ERRORS, in_words
from ..evidence.document import Facts, Table, as_text
from ..evidence.report import write_report
from ..evidence.run import new_run_id
from ..evidence.summary import RunSummary, execution_summary, summary
from ..files import write_whole
from ..system.folders import lock_within


def output_folder() -> Path:
    """The ``--outputdir`` that Robot or pabot was given; the current folder if none was."""
    output = Path(str(BuiltIn().get_variable_value("${OUTPUT DIR}")))
    shared = _pabot_folder(output)
    return output if shared is None else shared.parent


def execution_id() -> str:
    """A new run id; one for all processes of pabot."""
    new = new_run_id(datetime.now(UTC))
    shared = _pabot_folder(Path(str(BuiltIn().get_variable_value("${OUTPUT DIR}"))))
    return new if shared is None else _agreed(shared / "lineproof-run-id", new)


def beside_others() -> bool:
    """Return whether this is a process of pabot, which shares Allure's results and the summary with others."""
    return BuiltIn().get_variable_value("${PABOTQUEUEINDEX}") is not None


def _pabot_folder(output: Path) -> Path | None:
    if not beside_others():
        return None
    # each process has a folder in this one as its output folder; pabot empties it when it starts
    return next((folder for folder in output.parents if folder.name == "pabot_results"), None)


def _agreed(path: Path, proposal: str) -> str:
    """Return what the first process wrote to *path*: its own *proposal*."""
    own = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    write_whole(own, proposal)
    try:
        os.link(own, path)  # whole or not at all, and only once
    except FileExistsError:
        return path.read_text(encoding="utf-8")
    finally:
        own.unlink(missing_ok=True)
    return proposal


def closing_words(execution: Path, closed: Mapping[Path, RunSummary]) -> str:
    """The last words on the console: page, counts and folders of *execution*, of which the report is left.

    Empty if nothing was left. *closed*: this process's own runs, by folder.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # some file systems know no locks
            descriptor = os.open(execution, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            lock_within(descriptor, 60.0)  # another process of pabot may be writing the report
        found = execution_summary(execution, closed)
        if not found.runs and not found.unread:
            lonely = any((execution / "allure").glob("*-result.json"))
            return "\nNothing was measured: no testbed's set-up was completed.\n" if lonely else ""
        try:
            write_report(execution, found)
        except BREAKDOWN_ERRORS as error:  # the records make them again
            found = replace(found, unread=(*found.unread, in_words(error)), page="")
    document = summary(replace(found, page=""))
    sections = [
        # the sentences were told, each when it was judged
        replace(section, parts=[part for part in section.parts if not isinstance(part, Facts | Table)])
        for section in document.sections
    ]
    # below Robot's own lines, as one of them
    page = f"{'Page:':9}{found.page}\n" if found.page else ""
    return f"{page}\n{as_text(replace(document, sections=sections))}"
