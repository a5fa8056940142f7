"""Keywords that reach the router under test over SSH."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal

from robot.api import logger
from robot.api.deco import keyword
from robot.libraries.BuiltIn import BuiltIn
from SSHLibrary import SSHLibrary

from ..core.rule import Ruling
from ..core.trial import Load
from ..core.under_load import UnderLoad
from ..core.verdict import Verdict
from ..documents.chart import svg_image
from ..documents.document import as_html
from ..errors import LineproofError, TestbedError
from ..evidence.forms import machine_document, under_load_document
from ..session.explaining import explained, read_under_load, samples
from ..system.ssh import Connection
from .shared import Component, show_document


class RouterKeywords(Component):
    """Reaches the router under test through SSHLibrary, and reads it in trials that no verdict rests on.

    Host keys are checked against the testbed's ``known_hosts`` file; an unknown or another key refuses the connection.
    Every command has a time limit, and a dropped link is an error (SSHLibrary alone reports neither).
    """

    def connect(self) -> None:
        """Log in to the router, read what it is, and share the connection with the suite's SSHLibrary."""
        session = self.shared.session
        self.shared.progress.work("connecting to the router")
        versions = session.router.connect()
        self.shared.note_simulation()
        for name, value in versions.items():
            logger.info(f"{name}: {value}")
        if (connection := session.router.connection) is not None:
            _share(connection)
        BuiltIn().set_suite_variable("@{ROUTER INTERFACES}", *(side.interface for side in session.testbed.facts.sides))

    def configure(self) -> None:
        """Undo what an earlier run has left on the router, set what the testbed needs, and show what was read."""
        session, router = self.shared.session, self.shared.session.router
        self.shared.progress.work("configuring the router")
        if undone := router.undo_leftover():
            logger.warn(undone)
        router.configure()
        for warning in router.warnings:
            logger.warn(warning)
        if waited := router.links.noted_words:
            logger.info(f"links were awaited{waited}")
        if router.line_rate_note:
            logger.info(router.line_rate_note)
        if not router.is_black_box:
            logger.info(as_html(machine_document("The router", router.facts, session.simulated)), html=True)
        for difference in router.facts.differences:
            logger.warn(f"{session.plan.platform.platform}: {difference}")

    def restore(self) -> None:
        """Undo what `Start Testbed` changed, then log out. Raises TestbedError naming what stays on the router."""
        if session := self.shared.own_session:
            connection = session.router.connection
            try:
                session.router.restore()
            finally:
                if connection is not None:
                    _take_back(connection)

    @keyword(tags=["router"])
    def run_on_router(self, command: str, limit: timedelta = timedelta(seconds=10)) -> str:
        """Run *command* on the router and return its output.

        Fails if it takes longer than *limit* or a day, the link drops, or its exit status is not 0; a ``vppctl`` also
        if VPP refuses it, which has status 0. Example:
        | ${text} =    Run On Router    uname -r    limit=5 s
        """
        result = self.shared.session.router.shell(command, min(limit.total_seconds(), 86400.0))
        if result.status != 0:
            raise TestbedError(f"'{command}' ended with status {result.status} on the router: {result.stderr.strip()}")
        if refused := self.shared.session.router.driver.refusal_in(command, result.stdout):
            raise TestbedError(refused)
        return result.stdout

    @keyword(tags=["evidence"])
    def explain_verdict(self, when: Literal["never", "on failure", "always"] = "on failure") -> None:
        """Add to the verdict why frames were lost, as far as the router's facts and counters show it.

        Changes no ruling. First the sentence's load is sent for one or two seconds more, and what the router reports
        meanwhile is kept. Where ``perf`` (Linux, VPP) or ``pmcstat`` (FreeBSD) is there, a flame graph follows, of
        seconds of its own. After FAIL also at the highest load of the same traffic that passed in this run, if there is
        one below. *when*: ``never``, ``on failure`` or ``always``; nothing is sent after INCONCLUSIVE, or after a
        verdict of earlier runs' trials alone. Never fails: what could not be read is a warning. Example:
        | Explain Verdict    on failure
        """
        router, judged, verdict = self.shared.session.router, self.shared.sentence, self.shared.verdict
        loads = self._loads(verdict, when)
        facts = None if router.is_black_box else router.facts
        judged.verdict = explained(verdict, facts, next(iter(loads), None))
        if judged.verdict.why.explanation:
            logger.info("\n".join(judged.verdict.why.explanation.lines))

    def _loads(self, verdict: Verdict, when: str) -> list[UnderLoad]:
        session = self.shared.session
        wanted = {"never": (), "on failure": (Ruling.FAIL,), "always": (Ruling.FAIL, Ruling.PASS)}[when]
        if verdict.ruling not in wanted or all(trial.run for trial in verdict.trials):
            return []
        if session.router.is_black_box or not session.router.connected:
            return []
        load = session.plan.load_for(verdict.requirement)
        loads = {"under load": load}
        passed = self.shared.records.highest_passed(verdict.requirement)
        if verdict.ruling is Ruling.FAIL and passed is not None and passed < load.pps:
            loads["under load that passed"] = Load(passed)
        return [reading for name, at in loads.items() if (reading := self._read(name, verdict, at)) is not None]

    def _read(self, name: str, verdict: Verdict, load: Load) -> UnderLoad | None:
        session, recorder = self.shared.session, self.shared.records
        title = f"The router {name}: {verdict.requirement.sentence}"
        try:
            reading = read_under_load(session, verdict.requirement, load)
            more = samples(session, load, reading, title)
            unread = {sampler: sample.why for sampler, sample in more.items() if sample.why}
            reading = replace(reading, unread={**reading.unread, **unread})
            texts = ChainMap(*(dict(sample.texts) for sample in more.values()), dict(reading.raw))
            recorder.keep_texts(name, texts)
        except LineproofError as error:
            logger.warn(f"the router could not be read {name}: {error}")
            return None
        show_document(under_load_document(reading, title, session.simulated))
        for sampler, sample in more.items():
            if sample.picture:
                logger.info(svg_image(f"{sampler} of the router {name}".capitalize(), sample.picture), html=True)
        return reading


def _suites_library() -> SSHLibrary | None:
    """Return the SSHLibrary that the running suite imports, under whatever name."""
    imported: Any = BuiltIn().get_library_instance(all=True)
    return next((library for library in imported.values() if isinstance(library, SSHLibrary)), None)


def _share(connection: Connection) -> None:
    """Let the keywords of the suite's SSHLibrary use *connection*."""
    if (library := _suites_library()) is not None:
        # its keywords register connections of their own only
        index = library._connections.register(connection, "router")
        connection.config.update(index=index, alias="router")


def _take_back(connection: Connection) -> None:
    """Let them use it no more."""
    library = _suites_library()
    # the suite may have closed it
    if library is not None and connection in library._connections.connections:
        library.switch_connection(connection.config.index)
        library.close_connection()
