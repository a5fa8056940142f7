"""Shared by the components of the keyword library: session, records, labels, interrupts; variables; last words."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import secrets
import signal
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from robot.api import logger
from robot.api.types import Secret
from robot.libraries.BuiltIn import BuiltIn
from robot.running.context import EXECUTION_CONTEXTS
from robot.utils import timestr_to_secs

from ..core.quantity import Requirement
from ..core.rule import Ruling
from ..core.trial import Trial
from ..core.verdict import Verdict
from ..documents.document import Document, Facts, Note, Part, Table, as_html, as_page, as_text
from ..errors import BREAKDOWN_ERRORS, ConfigError, Inconclusive, in_words
from ..evidence import allure
from ..evidence.forms import known_facts
from ..evidence.recorder import Recorder
from ..evidence.records import RequirementRecord
from ..evidence.report import write_report
from ..evidence.run import new_run_id
from ..evidence.summary import WITHOUT_VERDICT, RunSummary, execution_summary, summary
from ..files import read_text, require_folder, write_whole
from ..project import Project
from ..session.plan import Plan
from ..session.progress import Progress
from ..session.session import Session
from ..system.folders import lock_within
from ..system.login import Secrets
from ..system.signals import handle_ending, interrupt_words, let_go_of_terminal
from ..visible import shortened

NO_TESTBED = (
    "no testbed is open; the suite's settings need 'Suite Setup    Open Testbed For    <platform>' and 'Suite Teardown"
    "    Close Testbed', as the suites in tests/ have"
)


class Lent(Protocol):
    """A testbed that was lent to a suite."""

    def close(self) -> None:
        """Give it back. Harmless when repeated."""
        ...


@dataclass
class Judged:
    """The sentence of the running test. ``expected``: the verdict with which the test passes.

    ``carries``: how much the router carries, ``margin``: by how much that is more, in words, "" where nobody knows, and
    ``limit``: what ended the search, where that is not the router; ``searched``: its trials. ``record``: None until it
    is kept. ``more``: further lines of the message.
    """

    requirement: Requirement
    expected: str = Ruling.PASS.value
    verdict: Verdict | None = None
    carries: str = ""
    margin: str = ""
    limit: str = ""
    searched: Sequence[Trial] = ()
    record: RequirementRecord | None = None
    more: list[str] = field(default_factory=list)


@dataclass
class Shared:
    """*project_folder* as the library was told, "" where it finds it itself.

    ``opened``: the open sessions, each with the name of the suite that opened it; the innermost suite's is the last.
    ``lent``: what was lent to suites, by the suite's name.
    """

    project_folder: str = ""
    opened: list[tuple[str, Session]] = field(default_factory=list)
    lent: dict[str, Lent] = field(default_factory=dict)
    plan: Plan | None = None
    """The plan of the testbed that is being opened."""

    suite: Any = None
    """The running suite, of the tests that were selected."""

    wrong: dict[str, list[str]] = field(default_factory=dict)
    """Place of a test -> what is wrong with its sentences: it fails without being run."""

    unjudged: list[str] = field(default_factory=list)
    """Tests that failed without a verdict, each with its message: the records would not tell of them."""

    judged: Judged | None = None
    shown: list[str] = field(default_factory=list)
    """HTML that the keyword of the sentence shows at its end."""

    recorder: Recorder | None = None
    labels: RunLabels | None = None
    progress: Progress = field(default_factory=lambda: Progress(None))
    is_measuring: bool = False
    """A keyword runs as a part of a measurement."""

    def __post_init__(self) -> None:
        self.interruption = Interruption(lambda: bool(self.opened))

    @property
    def project(self) -> Project:
        """The project of the running suite. Raises ConfigError if a folder was named that is none."""
        source = Path(self.project_folder or BuiltIn().get_variable_value("${SUITE SOURCE}"))
        return Project.find(source if self.project_folder or source.is_dir() else source.parent)

    @property
    def results(self) -> Path:
        """The folder for the folders of runs: Robot's output folder, else ``results/`` of the project."""
        output = output_folder()
        return self.project.results if output == Path(BuiltIn().get_variable_value("${EXECDIR}")) else output

    @property
    def session(self) -> Session:
        """The open session. Raises ConfigError with the lines that the suite lacks."""
        if not self.opened:
            raise ConfigError(NO_TESTBED, BuiltIn().get_variable_value("${SUITE SOURCE}"))
        return self.opened[-1][1]

    @property
    def sentence(self) -> Judged:
        """The sentence that was read last. Raises ConfigError if none was."""
        if self.judged is None:
            raise ConfigError("no sentence was read; expected `Read Sentence` before this keyword")
        return self.judged

    @property
    def verdict(self) -> Verdict:
        """The verdict on the sentence that was read last. Raises ConfigError if it has none yet."""
        if (verdict := self.sentence.verdict) is None:
            raise ConfigError("the sentence has no verdict; expected `Judge In Trials` before this keyword")
        return verdict

    @property
    def suite_name(self) -> str:
        """The name of the running suite."""
        return str(BuiltIn().get_variable_value("${SUITE NAME}"))

    @property
    def own_session(self) -> Session | None:
        """The session that the running suite itself opened; None if it has none, or has closed it."""
        return self.opened[-1][1] if self.opened and self.opened[-1][0] == self.suite_name else None

    def give_back(self) -> None:
        """Give back what was lent to the running suite. Harmless when repeated."""
        if (lent := self.lent.pop(self.suite_name, None)) is not None:
            lent.close()

    @property
    def records(self) -> Recorder:
        """The records of the open run. Raises Inconclusive if none is open, ConfigError within a measurement."""
        if self.is_measuring:
            raise ConfigError("a measurement is under way; expected a keyword that sends no traffic meanwhile")
        if self.recorder is None:
            raise Inconclusive("INCONCLUSIVE: no testbed is open; the suite needs 'Suite Setup    Open Testbed For …'")
        self.note_simulation()
        return self.recorder

    def note_simulation(self) -> None:
        """Mark the open run if the generator or the router has said by now that it is simulated."""
        if self.labels is not None:
            self.labels.follow()


class Component:
    """A part of the keyword library."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared


def show_document(document: Document, attachment: str = "") -> None:
    """Show *document* in Robot's log, and in Allure as the running test's *attachment* of this name."""
    if attachment:
        allure.attach(attachment, as_page(document), "HTML")
    logger.info(as_html(document), html=True)


WIDTH = 79
"""Columns that a line may take on a console of 80."""


def narrow(text: str) -> str:
    """Return *text* in lines of at most :data:`WIDTH` characters; what is broken goes on indented."""
    wrapper, lines = textwrap.TextWrapper(WIDTH, break_long_words=False, break_on_hyphens=False), []
    for line in text.splitlines():
        wrapper.subsequent_indent = " " * (len(line) - len(line.lstrip()) + 4)
        lines.append(wrapper.fill(line))
    return "\n".join(lines)


def say(text: str) -> None:
    """Print *text* on the console at once, on lines of their own, and into the log."""
    logger.info(text)
    logger.console(f"\n{narrow(text)}")


def add_to_test_message(text: str) -> None:
    """Add *text* to the message of the running test, without a word about it in the log."""
    if (test := EXECUTION_CONTEXTS.current.test) is not None:
        test.message = "\n".join(filter(None, [test.message, text]))


ROBOTS_WORDS = "Execution terminated by signal"
CLOSING = "The testbed is being closed, which takes a minute at most. The next signal ends without that.\n"


class Interruption:
    """A listener of Robot that passes signals on to it, and says which. *is_open*: whether a testbed is."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, is_open: Callable[[], bool]) -> None:
        self._is_open = is_open
        self._robot: Any = None
        self._words, self._passed_on = ROBOTS_WORDS, False
        self._held: int | None = None

    def watch(self) -> None:
        """Begin, where Robot handles signals. May be repeated."""
        self.pass_on()
        handler = signal.getsignal(signal.SIGTERM)
        if threading.current_thread() is threading.main_thread() and callable(handler) and handler != self._handle:
            self._robot = handler
            handle_ending(self._handle)

    def pass_on(self) -> None:
        """Let Robot end, if a signal came while the testbed was closed."""
        number, self._held = self._held, None
        if number is not None and not self._passed_on:
            self._handle(number, None)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        let_go_of_terminal()
        self._words = interrupt_words(number)
        context = EXECUTION_CONTEXTS.current
        closing = self._passed_on or (context is not None and context.in_suite_teardown)
        if self._held is None and closing and self._is_open():
            self._held = number
            if sys.__stderr__ is not None:
                with contextlib.suppress(OSError, ValueError):
                    sys.__stderr__.write(CLOSING)
            return
        self._passed_on = True
        self._robot(number, frame)

    def end_keyword(self, data: Any, result: Any) -> None:
        """Name the signal that came in the keyword's message."""
        self.log_message(result)

    end_test = end_suite = end_keyword

    def log_message(self, message: Any) -> None:
        """Put the name of the signal that came in place of Robot's words for any signal."""
        if ROBOTS_WORDS in message.message:
            message.message = message.message.replace(ROBOTS_WORDS, self._words)


@dataclass(frozen=True)
class RunLabels:
    """*recorder* writes the run of *session*; *metadata*: the suite's, beside the testbed's."""

    session: Session
    recorder: Recorder
    allure_folder: Path
    metadata: dict[str, str]

    def show(self) -> None:
        """Set the suite's metadata, and Allure's environment and categories, as far as they are known by now."""
        simulated, known = self.session.simulated, BuiltIn().get_variable_value("&{SUITE METADATA}", {})
        testbed, speed = self.session.testbed.facts.label, self.session.testbed.facts.clock_speed
        if simulated:
            faster = f"; its clock runs {speed:g} times as fast as real time" if speed != 1 else ""
            testbed = f"SIMULATED (not a measurement of a router): {self.session.simulation_text}{faster}"
        labels = {"Testbed": testbed, **self.metadata}
        for name, value in labels.items():
            if known.get(name) != value:
                BuiltIn().set_suite_metadata(name, value, append=False, top=False)
        if simulated:
            BuiltIn().set_suite_metadata("Testbed", labels["Testbed"], append=False, top=True)
        facts = {f"Router {name}": text for name, text in known_facts(self.session.router.facts).items()}
        allure.write_environment(self.allure_folder, {**labels, **facts})
        allure.write_categories(self.allure_folder, labels["Platform"], simulated)

    def follow(self) -> None:
        """Mark everything if the generator or the router has said meanwhile that it is simulated."""
        known = self.recorder.environment.simulated
        self.recorder.mark_simulated(self.session.simulation_signs)
        if self.session.simulated and not known:
            self.show()
            show_simulated(self.session)


def show_simulated(session: Session) -> None:
    """Say on the console that *session* is simulated."""
    say(f"SIMULATED: {session.simulation_text}; nothing here is a measurement of a router.")


# -- an execution of Robot: where it leaves its evidence, and its last words -------------------------------------------


def output_folder() -> Path:
    """Return the ``--outputdir`` that Robot or pabot was given; the current folder if none was."""
    output = Path(str(BuiltIn().get_variable_value("${OUTPUT DIR}")))
    shared = _pabot_folder(output)
    return output if shared is None else shared.parent


def execution_id() -> str:
    """Return a new run id; one for all processes of pabot."""
    new = new_run_id(datetime.now(UTC))
    shared = _pabot_folder(Path(str(BuiltIn().get_variable_value("${OUTPUT DIR}"))))
    return new if shared is None else _agreed(shared / "lineproof-run-id", new)


def _pabot_folder(output: Path) -> Path | None:
    if BuiltIn().get_variable_value("${PABOTQUEUEINDEX}") is None:
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
    """Return the last words on the console: page, counts and folders of *execution*; write its report.

    Empty if nothing was left. *closed*: this process's own runs, by folder.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # some file systems know no locks
            descriptor = os.open(execution, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            lock_within(descriptor, 60.0)  # another process of pabot may be writing the report
        summaries = execution_summary(execution, closed)
        if not summaries.runs and not summaries.unread:
            lonely = any((execution / "allure").glob("*-result.json"))
            return "\nNothing was measured: no testbed's set-up was completed.\n" if lonely else ""
        try:
            write_report(execution, summaries)
        except BREAKDOWN_ERRORS as error:  # the records make them again
            summaries = replace(summaries, unread=(*summaries.unread, in_words(error)), page="")
    document = summary(replace(summaries, page=""))
    sections = [
        # the sentences were told, each when it was judged, and tests without one when they failed
        replace(section, parts=[part for part in section.parts if not _was_told(part)])
        for section in document.sections
    ]
    # below Robot's own lines, as one of them
    page = f"{'Page:':9}{summaries.page}\n" if summaries.page else ""
    return f"{page}\n{as_text(replace(document, sections=sections))}"


def _was_told(part: Part) -> bool:
    return isinstance(part, Facts | Table) or (isinstance(part, Note) and part.text.startswith(WITHOUT_VERDICT))


# -- variables of the command line, and Robot's secret ones ------------------------------------------------------------


_ANY, _PERHAPS = (".+", "a value, or leave it out"), (".*", "")

VARIABLES = {
    "TESTBED": _ANY,
    "GOAL": _ANY,
    "TELEMETRY": ("never|onfailure|always", "never, on failure or always"),
    "MARGIN": _ANY,
    "CALIBRATIONS": _PERHAPS,
    "RESUME": ("([a-z0-9][a-z0-9.]{0,99})?", "the name of a run's folder in the results"),
    "PROJECT": _PERHAPS,
}
"""The variables of the resources: what a value matches, as :func:`_word`; and what is expected."""


def check_run_variables() -> None:
    """Raise ConfigError for a variable of the running suite that is wrong or misspelt; says what is expected."""
    suite = Path(str(BuiltIn().get_variable_value("${SUITE SOURCE}")))
    given = (value.partition(":")[0] for word, value in pairwise(sys.argv) if word in ("-v", "--variable"))
    check_names(given, read_text(suite, 1 << 20) if suite.is_file() else "")
    check_values({name: BuiltIn().get_variable_value(f"${{{name}}}") for name in VARIABLES})


def check_names(given: Iterable[str], suite: str) -> None:
    """Raise ConfigError for a name *given* on the command line that is like one of ours, and not in the text *suite*.

    Robot itself takes any name, and the run would have the default of ours; with '=' for ':' all of it is the name.
    """
    for name in given:
        # 'GAOL' is 0.75 of 'GOAL'
        near = difflib.get_close_matches(name.partition("=")[0].upper()[:40], VARIABLES, 1, 0.74)
        if near and name.upper() not in VARIABLES and name.upper() not in suite.upper():
            raise ConfigError(f"'-v {shortened(name)}': Lineproof has no such variable; did you mean '-v {near[0]}:…'?")


def check_values(values: Mapping[str, Any]) -> None:
    """Raise ConfigError for a value that could only fail later. None: its default."""
    for name, value in values.items():
        pattern, expected = VARIABLES[name]
        if value is not None and not re.fullmatch(pattern, _word(value), re.DOTALL):
            raise _wrong(name, value, expected)
    if (margin := values.get("MARGIN")) is not None:
        margin_seconds(margin)
    if calibrations := values.get("CALIBRATIONS"):
        require_folder(Path(str(calibrations)), "the folder of calibrations (-v CALIBRATIONS:)")


MARGIN_SECONDS = 15.0
"""Seconds of traffic after which the search for a margin ends, where the run says no other."""


def margin_seconds(value: object) -> float:
    """Return the seconds of traffic that ``-v MARGIN:`` gives a search: 0 for ``off``. Raises ConfigError."""
    # a YAML file makes true and false of on and off
    if (named := {"on": MARGIN_SECONDS, "true": MARGIN_SECONDS, "off": 0.0, "false": 0.0}.get(_word(value))) is None:
        try:
            named = time_argument(str(value)).total_seconds()
        except ValueError:
            named = 0.0
        if not 0 < named <= 86400:
            raise _wrong("MARGIN", value, "on, off, or a time of more than 0 and at most 24 h, as '5 min'")
    return named


def time_argument(value: str | float) -> timedelta:
    """Return a keyword's argument that is a time in Robot's way (``2 min``); timedelta.max: that or longer."""
    # Robot's own conversion ends in an OverflowError; a ValueError makes it try the default's type instead
    try:
        return timedelta(seconds=timestr_to_secs(value))
    except OverflowError:
        return timedelta.max


def _wrong(name: str, value: object, expected: str) -> ConfigError:
    return ConfigError(f"'-v {name}:{shortened(value)}': expected {expected}")


def _word(value: object) -> str:
    """Return *value* as Robot compares words."""
    return re.sub(r"[ _-]", "", str(value)).lower()


def secrets_of_variables() -> Secrets:
    """Return the suite's secrets by name: ``${ROUTER_PASSWORD: Secret}`` is ROUTER_PASSWORD."""
    given, plain = dict[str, str](), set[str]()
    for name, value in BuiltIn().get_variables(no_decoration=True).items():
        if isinstance(value, Secret):
            given[_capitals(name)] = str(value.value)
        elif isinstance(value, str):
            plain.add(_capitals(name))
    return Secrets(given, frozenset(plain))


def _capitals(name: str) -> str:
    """Return a variable's name as testbed files have it; to Robot 'router password' is the same."""
    return name.upper().replace(" ", "_")
