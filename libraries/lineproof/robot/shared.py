"""What the components of the keyword library share: the open session and the records of the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from robot.libraries.BuiltIn import BuiltIn

from ..errors import ConfigError, Inconclusive
from ..evidence.recorder import Recorder
from ..project import Project
from ..session.progress import Progress
from ..session.session import Session
from .execution import output_folder
from .interruption import Interruption
from .run_labels import RunLabels

NO_TESTBED = (
    "no testbed is open; the suite's settings need 'Suite Setup    Open Testbed For    <platform>' and 'Suite Teardown"
    "    Close Testbed', as the suites in tests/ have"
)


class Lent(Protocol):
    """What was lent to a suite."""

    def close(self) -> None:
        """Give it back. Harmless when repeated."""
        ...


@dataclass
class Shared:
    """*project* and *results* as the library was told, "" where it finds them itself.

    ``opened``: the open sessions, each with the name of the suite that opened it; the innermost suite's is the last.
    """

    project_folder: str = ""
    results_folder: str = ""
    opened: list[tuple[str, Session]] = field(default_factory=list)
    lent: list[tuple[str, Lent]] = field(default_factory=list)
    """What was lent to suites, each with the name of the suite."""

    suite: Any = None
    """The running suite, of the tests that were selected."""

    recorder: Recorder | None = None
    labels: RunLabels | None = None
    progress: Progress = field(default_factory=lambda: Progress(None))

    def __post_init__(self) -> None:
        self.interruption = Interruption(lambda: bool(self.opened))

    @property
    def project(self) -> Project:
        """The project of the running suite. Raises ConfigError if a folder was named that is none."""
        return Project.find(Path(self.project_folder) if self.project_folder else _suite_folder())

    @property
    def results(self) -> Path:
        """The folder for the folders of runs: Robot's output folder, else ``results/`` of the project."""
        if self.results_folder:
            return Path(self.results_folder).resolve()
        output = output_folder()
        return self.project.results if output == Path(BuiltIn().get_variable_value("${EXECDIR}")) else output

    @property
    def session(self) -> Session:
        """The open session. Raises ConfigError with the lines that the suite lacks."""
        if not self.opened:
            raise ConfigError(
                NO_TESTBED,
                BuiltIn().get_variable_value("${SUITE SOURCE}"),
            )
        return self.opened[-1][1]

    @property
    def own_session(self) -> Session | None:
        """The session that the running suite itself opened; None if it has none, or has closed it."""
        if self.opened and self.opened[-1][0] == BuiltIn().get_variable_value("${SUITE NAME}"):
            return self.opened[-1][1]
        return None

    def borrow(self, lent: Lent) -> None:
        """The running suite has *lent* until :meth:`give_back`."""
        self.lent.append((str(BuiltIn().get_variable_value("${SUITE NAME}")), lent))

    def lent_to_suite(self) -> Lent | None:
        """Return what was lent to the running suite; None: nothing."""
        name = BuiltIn().get_variable_value("${SUITE NAME}")
        return next((lent for suite, lent in reversed(self.lent) if suite == name), None)

    def give_back(self) -> None:
        """Give back what was lent to the running suite. Harmless when repeated."""
        while (lent := self.lent_to_suite()) is not None:
            lent.close()
            self.lent = [item for item in self.lent if item[1] is not lent]

    @property
    def records(self) -> Recorder:
        """The records of the open run. Raises Inconclusive if none is open."""
        if self.recorder is None:
            raise Inconclusive("INCONCLUSIVE: no testbed is open; the suite needs 'Suite Setup    Open Testbed For …'")
        self.note_simulation()
        return self.recorder

    def note_simulation(self) -> None:
        """Mark the open run if the generator or the router has said by now that it is simulated."""
        if self.labels is not None:
            self.labels.follow()


def _suite_folder() -> Path:
    source = Path(BuiltIn().get_variable_value("${SUITE SOURCE}"))
    return source if source.is_dir() else source.parent


class Component:
    """A part of the keyword library."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
