"""Keywords that open and close the testbed, and drive its traffic generator."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot.api import TestSuite, logger
from robot.api.deco import keyword
from robot.libraries.BuiltIn import BuiltIn
from robot.utils import timestr_to_secs

from ..ceilings.calibration import FOLDER
from ..core.quantity import Requirement
from ..errors import ConfigError
from ..evidence.document import as_html
from ..evidence.forms import machine_document
from ..session.plan import Plan
from ..session.progress import Progress
from ..session.session import Session
from ..simulation.faults import parse_fault
from ..testbed.lab import LabPlace
from ..units import counted, duration_text
from .lending import lent_testbed
from .run_variables import check_run_variables, secrets_of_variables
from .sentences import KeywordCall, SentenceCheck, own_keywords, place_of, shared_steps, steps_of
from .shared import Component, say, show_simulated


class TestbedKeywords(Component):
    """Reads a testbed's files, checks every sentence of the suite against it, and opens and closes it.

    The generator is Cisco TRex (stateless) through its Python client, in a process of its own, or another kind.
    """

    @keyword(tags=["testbed"])
    def read_plan(
        self, platform: str, software: str | None, testbed: str, goal: str, calibrations: str | None = None
    ) -> None:
        """Read platform, testbed, goal and profiles from ``variables/``. Starts nothing.

        *calibrations*: the folder that ``lineproof calibrate`` wrote to; else the project's ``results/calibrations``.

        *software* None takes the first that the platform lists. An unknown name or key fails with file, line and what
        is expected. Of a pool, a file of ``variables/testbeds`` with ``kind: pool``, it takes a testbed that is free:
        pabot lends them (a value set for each) or labgrid (a place for each), until the testbed is closed. Waits, and
        says what for, if none is free, and fails if none is within the pool's time. Example:
        | Read Plan    netgate6100    vpp    simulated    standard
        """
        self.shared.interruption.watch()
        check_run_variables()
        project, testbed = self.shared.project, lent_testbed(self.shared, testbed)
        folder = Path(calibrations) if calibrations else project.results / FOLDER
        plan = replace(Plan.read(project, platform, software, testbed, goal, folder), secrets=secrets_of_variables())
        self.shared.plan = plan
        logger.info(f"{plan.platform.description}, {plan.software_name} {plan.software.version}; {plan.goal}")
        for layers, name in ((project.platforms, platform), (project.testbeds, testbed), (project.goals, goal)):
            logger.info(f"read {layers / f'{name}.yaml'}")
        for replaced in plan.replaced:
            logger.warn(replaced)
        logger.info(f"traffic words from {', '.join(sorted(map(str, project.profiles.glob('*.yaml'))))}")

    @keyword(tags=["testbed"])
    def check_sentences_of_suite(self) -> None:
        """Parse every sentence of the running suite, as far as it was selected, before any traffic is sent.

        In tests, the suite file's own keywords, set-ups, tear-downs, templates, the bodies of IF, FOR and TRY, and
        calls by `Run Keyword` and the like; not calls by `Run Keyword And Expect Error`, `… Ignore Error` and `…
        Return Status`, nor sentences with a variable that is set during the run. In ``__init__.robot``: in every file
        of the folder.

        A test with a sentence that is not understood, asks more than the ports can carry, or is no sentence to Robot
        because it compares nothing or has two spaces inside, fails with file and line and is not run. Where no other
        is left, or the sentence is one that tests share, this keyword fails. Example:
        | Check Sentences Of Suite
        """
        suite, plan = self._running_suite(), self._plan
        check = SentenceCheck(plan.catalogue, plan, own_keywords(suite))
        if problems := check.problems(_shared_steps(suite)):
            raise ConfigError("\n".join(problems))
        tests = {place_of(test): check.problems(steps_of(test)) for test in suite.all_tests}
        self.shared.wrong = {test: problems for test, problems in tests.items() if problems}
        for misfit in check.misfits():
            logger.warn(misfit)
        if tests and len(self.shared.wrong) == len(tests):
            raise ConfigError("no sentence of these tests can be judged; each test says why")
        required = check.required
        self.shared.progress = Progress(sys.__stderr__, plan.clock_speed, len(required))
        self.shared.widest = max((len(requirement.sentence) for requirement in required), default=0)
        if required:
            say(_budget_words(plan, required) + _margin_words(required))
            logger.info(str(plan.goal))

    def _say(self, words: str) -> None:
        self.shared.progress.end()  # else its line would stay below
        say(words)

    @property
    def _plan(self) -> Plan:
        if self.shared.plan is None:
            raise ConfigError("no plan was read; expected `Read Plan` before this keyword")
        return self.shared.plan

    def _running_suite(self) -> TestSuite:
        """The suite with the tests that were selected, or its file where the library was imported while it ran."""
        source, suite = Path(BuiltIn().get_variable_value("${SUITE SOURCE}")), self.shared.suite
        return suite if suite is not None and suite.source == source else TestSuite.from_file_system(source)

    @keyword(tags=["testbed"])
    def start_testbed(self) -> None:
        """Remove what a killed run has left, wait until the testbed is free, and start its processes, if it has any.

        A testbed with ``lab`` in its file is acquired from labgrid. What is waited for is on the console.

        Fails if one does not start, with everything ended again. Example:
        | Start Testbed
        """
        lent = self.shared.lent.get(self.shared.suite_name)
        self.shared.progress.work("starting the testbed")
        session = Session.start(self._plan, lab=lent if isinstance(lent, LabPlace) else None, say=self._say)
        self.shared.progress.end()
        self.shared.opened.append((self.shared.suite_name, session))
        if session.simulated:
            show_simulated(session)

    @keyword(tags=["testbed"])
    def connect_generator(self) -> None:
        """Connect to the TRex server and claim its ports.

        Fails with one sentence if no server answers, the server needs another client, another user holds a port, a
        link is down, or a port's speed is not the platform's. Example:
        | Connect Generator
        """
        generator = self.shared.session.generator
        self.shared.progress.work("connecting to the generator")
        try:
            generator.connect()
        finally:
            self.shared.note_simulation()
        if (host := self.shared.session.testbed.host) is not None:
            if host.problem:
                logger.info(f"the generator's host is not read: {host.problem}")
            else:
                logger.info(as_html(machine_document("The generator's host", host.facts)), html=True)
        for port in generator.ports:
            logger.info(f"port {port.index}: {port.mac}, {port.speed_text}, {port.driver}")

    @keyword(tags=["testbed"])
    def check_reachability(self) -> None:
        """Send slow traffic in each direction for a second; some of it must come back, whatever the router's speed.

        Then nothing is sent for four seconds: frames that come all the same (spanning tree, ARP, LLDP) are expected in
        trials too, and no surplus.

        Fails with one sentence if a direction carries nothing (cables, addresses, routes, neighbours): that is the
        testbed's fault and must not count as loss. Example:
        | Check Reachability
        """
        traffic = self.shared.session.traffic
        self.shared.progress.work("sending a little traffic in each direction")
        traffic.check_reachability()
        self.shared.progress.end()
        logger.info(str(traffic.foreign))

    @keyword(tags=["testbed"])
    def release_generator(self) -> None:
        """Stop traffic and release the ports. Harmless when repeated, or without a testbed. Example:
        | Release Generator
        """
        if session := self.shared.own_session:
            session.release_generator()

    @keyword(tags=["testbed"])
    def end_testbed(self) -> None:
        """Stop traffic, release the ports, restore the router, end every process and give the testbed back.

        Harmless when repeated. Example:
        | End Testbed
        """
        try:
            if session := self.shared.own_session:
                self.shared.opened.pop()
                session.close()
        finally:
            self.shared.give_back()


def _budget_words(plan: Plan, requirements: list[Requirement]) -> str:
    """Return how long the sentences take in real time, with their search for a power without traffic."""
    budget = plan.budget(requirements)
    least = budget.wall_seconds(plan.clock_speed)
    most = least + (budget.at_most - budget.until_pass) / plan.clock_speed
    count = counted(len(requirements), "sentence")
    return f"{count}: about {duration_text(least)} if all pass at once, at most {duration_text(most)}"


def _shared_steps(suite: TestSuite) -> Iterator[KeywordCall]:
    """Yield the calls that the tests of *suite* share, in its file and in those below."""
    yield from shared_steps(suite)
    for child in suite.suites:
        yield from _shared_steps(child)


def _margin_words(requirements: list[Requirement]) -> str:
    """Return what the searches for margins add; "" where the run asks for none."""
    values = (BuiltIn().get_variable_value(f"${{{name}}}") for name in ("MARGIN", "MARGIN_DEADLINE"))
    wanted, deadline = (str(value).strip().lower() for value in values)
    count = sum(item.quantity.margin == "higher loads" for item in requirements)
    if wanted not in ("on", "true") or not count:
        return ""
    limit = "without a limit" if deadline == "none" else f"at most {duration_text(timestr_to_secs(deadline))}"
    return f"; a search for the margin after each PASS of {counted(count, 'rate')}, {limit}"


class FaultKeywords(Component):
    """Causes faults, to see how a procedure handles them. On a simulated testbed only."""

    @keyword(tags=["faults"])
    def cause_fault(self, kind: str, **details: Any) -> None:
        """Cause the fault *kind*.

        *details* are the keys of a testbed file's ``faults:`` (see docs/faults.md): ``start``: after which start of
        traffic from now on (default 1, the next; 0: at once); ``at``: how many seconds of the testbed's clock later;
        ``every=True``: after each later start again. Fails if the testbed is not simulated. Example:
        | Cause Fault    link flap    at=0.5    for=0.2
        """
        fault = parse_fault(kind, **details)
        self.shared.session.cause_fault(fault)
        logger.info(f"asked for: {fault.model_dump(by_alias=True, exclude_none=True)}")
