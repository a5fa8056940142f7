"""Keywords that open and close the testbed, and drive its traffic generator."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from robot.api import TestSuite, logger
from robot.api.deco import keyword
from robot.libraries.BuiltIn import BuiltIn
from robot.libraries.Remote import Remote

from ..ceilings import FOLDER
from ..core.quantity import Requirement
from ..documents.document import as_html
from ..errors import BREAKDOWN_ERRORS, ConfigError, TestbedError, in_words
from ..evidence.forms import machine_document
from ..platforms import named_file
from ..session.plan import Plan
from ..session.progress import Progress
from ..session.session import Session
from ..testbed.lab import LabPlace
from ..testbed.settings import PoolSettings, read_testbed_or_pool
from ..testbed.waiting_time import Say, WaitProgress
from ..units import counted, duration_text
from ..visible import shortened
from .acceptance import AcceptanceKeywords
from .router import RouterKeywords
from .sentences import KeywordCall, SentenceCheck, own_keywords, place_of, shared_steps, steps_of
from .shared import (
    Component,
    Shared,
    check_run_variables,
    margin_seconds,
    say,
    secrets_of_variables,
    show_simulated,
)


class TestbedKeywords(Component):
    """Reads a testbed's files, checks every sentence of the suite against it, and opens and closes it.

    The generator is Cisco TRex (stateless) through its Python client, in a process of its own, or another kind.
    """

    def __init__(self, shared: Shared, router: RouterKeywords, evidence: AcceptanceKeywords) -> None:
        super().__init__(shared)
        self._router, self._evidence = router, evidence

    @keyword(tags=["testbed"])
    def read_plan(
        self, platform: str, software: str | None, testbed: str, goal: str, calibrations: str | None = None
    ) -> None:
        """Read platform, testbed, goal and profiles from ``variables/``, and check the suite. Starts nothing.

        *calibrations*: the folder that ``lineproof calibrate`` wrote to; else the project's ``results/calibrations``.

        *software* None takes the first that the platform lists. An unknown name or key fails with file, line and what
        is expected. Of a pool, a file of ``variables/testbeds`` with ``kind: pool``, it takes a testbed that is free:
        pabot lends them (a value set for each) or labgrid (a place for each), until the testbed is closed. Waits, and
        says what for, if none is free, and fails if none is within the pool's time.

        Every sentence of the running suite is parsed, as far as it was selected: in tests, the suite file's own
        keywords, set-ups, tear-downs, templates, the bodies of IF, FOR and TRY, and calls by `Run Keyword` and the
        like; not calls by `Run Keyword And Expect Error`, `… Ignore Error` and `… Return Status`, nor sentences with a
        variable that is set during the run. In ``__init__.robot``: in every file of the folder. A test with a sentence
        that is not understood, asks more than the ports can carry, or is no sentence to Robot because it compares
        nothing or has two spaces inside, fails with file and line and is not run. Where no other is left, or the
        sentence is one that tests share, this keyword fails. Example:
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
        self._check_sentences(plan)

    def _check_sentences(self, plan: Plan) -> None:
        suite = self._running_suite()
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
        if required:
            budget = plan.budget(required)
            least, most = budget.wall_seconds(plan.clock_speed), budget.most_wall_seconds(plan.clock_speed)
            times = f"about {duration_text(least)} if all pass at once, at most {duration_text(most)} of trials"
            say(f"{counted(len(required), 'sentence')}: {times}{_margin_words(required)}")
            logger.info(str(plan.goal))

    def _say(self, text: str) -> None:
        self.shared.progress.end()  # else its line would stay below
        say(text)

    @property
    def _plan(self) -> Plan:
        if self.shared.plan is None:
            raise ConfigError("no plan was read; expected `Read Plan` before this keyword")
        return self.shared.plan

    def _running_suite(self) -> TestSuite:
        """Return the suite with its selected tests, or its file if the library was imported while it ran."""
        source, suite = Path(BuiltIn().get_variable_value("${SUITE SOURCE}")), self.shared.suite
        return suite if suite is not None and suite.source == source else TestSuite.from_file_system(source)

    @keyword(tags=["testbed"])
    def start_testbed(self, resume: str = "") -> None:
        """Start the testbed's processes, connect to generator and router, and set the router up.

        Removes what a killed run has left, and waits until the testbed is free; one with ``lab`` in its file is
        acquired from labgrid. Then opens the run's folder, and describes the run in the log, in Allure and in the
        records. *resume*: the id of an earlier run whose trials are evidence too.

        Claims the generator's ports. Logs in to the router and reads its versions, and what machine, system and cards
        it is ("not read": it does not report it); where it differs from the platform's file, a warning says so. Sets
        the testbed's addresses, static neighbours and routes, with ``set_up`` in its file those for IPv6, tagged and
        labelled frames as well; `Close Testbed` removes them. What an earlier run has left on a router of hardware is
        undone first, with a warning. Waits for a link at both ends of each cable that was brought up, ``link_wait`` s
        of the testbed's file at most, and reads the speed of the router's links and its neighbour entries of the
        generator's ports: one that was learned is a warning, because it ages.

        Where the suite file imports SSHLibrary, its keywords have the connection as ``router`` until `Close Testbed`.
        ``@{ROUTER INTERFACES}`` are the names of the router's interfaces, the first the one towards the generator's
        first port.

        Fails with one sentence if a process does not start (all are ended again), generator or router do not answer,
        the generator needs another client, another user holds a port, a host key is unknown or another, a login or a
        command is refused, a link is down or has another speed than the platform's ``ports``, or a neighbour entry is
        missing or wrong. Example:
        | Start Testbed
        | Switch Connection    router
        | ${text}    ${rc} =    Execute Command    uname -r    return_rc=True    timeout=10 s
        """
        lent = self.shared.lent.get(self.shared.suite_name)
        self.shared.progress.work("starting the testbed")
        session = Session.start(self._plan, lab=lent if isinstance(lent, LabPlace) else None, say=self._say)
        self.shared.progress.end()
        self.shared.opened.append((self.shared.suite_name, session))
        if session.simulated:
            show_simulated(session)
        self._evidence.describe_run(resume)
        self._connect_generator()
        self._router.connect()
        self._router.configure()

    def _connect_generator(self) -> None:
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

        First the versions of generator and router, and the router's configuration, are kept and shown: a run that is
        gone on with is no evidence if it had others. After the traffic nothing is sent for four seconds: frames that
        come all the same (spanning tree, ARP, LLDP) are expected in trials too, and no surplus.

        Fails with one sentence if a direction carries nothing (cables, addresses, routes, neighbours): that is the
        testbed's fault and must not count as loss. Example:
        | Check Reachability
        """
        self._evidence.note_parts()
        traffic = self.shared.session.traffic
        self.shared.progress.work("sending a little traffic in each direction")
        traffic.check_reachability()
        self.shared.progress.end()
        logger.info(str(traffic.foreign))

    @keyword(tags=["testbed"])
    def close_testbed(self) -> None:
        """Stop traffic, release the ports, restore the router, end the testbed's processes, give it back.

        Each step is taken even if one before it failed, and so is the last: the run's records are closed. Fails with
        what went wrong, also where a change stays on the router, with the commands that undo it. Harmless when
        repeated, or after `Open Testbed For` failed half way. Example:
        | Suite Teardown    Close Testbed
        """
        problems: list[str] = []
        steps: list[Callable[[], None]] = [self._router.restore, self._end_session, self._evidence.close_evidence]
        if session := self.shared.own_session:
            steps[:0] = [partial(_name_ended, session), session.release_generator]
        with ExitStack() as stack:
            for step in reversed(steps):
                stack.callback(_noting, step, problems)
        if problems:
            raise TestbedError("\n".join(problems))

    def _end_session(self) -> None:
        try:
            if session := self.shared.own_session:
                self.shared.opened.pop()
                session.close()
        finally:
            self.shared.give_back()


def _name_ended(session: Session) -> None:
    noticed = session.traffic.noticed or "by `Close Testbed`: the sentences before were judged without it"
    for ended in session.testbed.problems():
        logger.warn(f"{ended} (noticed {noticed})")


def _noting(step: Callable[[], None], problems: list[str]) -> None:
    """Take a *step*; what goes wrong is added to *problems*."""
    try:
        step()
    except BREAKDOWN_ERRORS as error:
        problems.append(in_words(error))


def _shared_steps(suite: TestSuite) -> Iterator[KeywordCall]:
    """Yield the calls that the tests of *suite* share, in its file and in those below."""
    yield from shared_steps(suite)
    for child in suite.suites:
        yield from _shared_steps(child)


def _margin_words(requirements: list[Requirement]) -> str:
    """Return what the searches for margins add; "" where the run asks for none."""
    limit = margin_seconds(BuiltIn().get_variable_value("${MARGIN}", "off"))
    count = sum(requirement.quantity.margin == "higher loads" for requirement in requirements)
    if not limit or not count:
        return ""
    most = f"at most {duration_text(limit)} of traffic"
    return f"; a search for the margin after each PASS of {counted(count, 'rate')}, {most}"


# -- testbeds that are lent, by pabot or labgrid -----------------------------------------------------------------------


def lent_testbed(shared: Shared, testbed: str) -> str:
    """Return the name of the testbed to use: *testbed* itself, or, of a pool, one that is free now.

    The suite has it until it is given back. Raises ConfigError, and TestbedError if none is free in the pool's time.
    """
    project = shared.project
    settings = read_testbed_or_pool(project.testbeds, testbed)
    if not isinstance(settings, PoolSettings):
        return testbed
    shared.give_back()
    lent: ValueSet | LabPlace
    if settings.lab is None:
        lent = ValueSet.acquire(testbed, settings.tags, settings.wait, say)
        name, lender = lent.testbed, f"pabot's value set '{lent.name}'"
    else:
        lent = LabPlace(settings.lab, testbed, say)
        name, lender = lent.name, f"labgrid's place '{lent.name}'"
    shared.lent[shared.suite_name] = lent
    named_file(project.testbeds, name, f"testbed for {lender}")
    logger.info(f"of pool '{testbed}' this suite has testbed '{name}', {lender}", also_console=True)
    return name


POLL = 0.5
"""Seconds between two tries."""

TESTBED = "testbed"
"""Key of a value set: its testbed."""

_EXAMPLE = (
    "expected a section for each testbed in the file of 'pabot --resourcefile', as '[bench1]' and 'testbed=bench1'"
)


@dataclass
class ValueSet:
    """The value set *name* of *testbed*, which pabot's server *remote* lends to this process, *caller*.

    ``pabot --resourcefile FILE`` reads a set for each testbed. That of a process that was killed stays with it until
    pabot ends.
    """

    remote: Any
    caller: str
    name: str = ""
    testbed: str = ""

    @classmethod
    def acquire(cls, pool: str, tags: Sequence[str], limit: float, say: Say) -> ValueSet:
        """Return a set with all *tags*, once one is free: *limit* s at most. Raises ConfigError, TestbedError."""
        value, remote = BuiltIn().get_variable_value, cast(Any, Remote)  # which has no types
        uri, caller = value("${PABOTLIBURI}"), value("${CALLER_ID}")
        if not uri or not caller:
            raise ConfigError(
                f"the testbeds of pool '{pool}' are lent by pabot; expected 'pabot --resourcefile FILE -v"
                f" TESTBED:{pool} …', or the name of one testbed"
            )
        lent = cls(remote(uri, timeout="30 s"), str(caller))
        progress = WaitProgress(f"a testbed of pool '{pool}'", limit, say)
        while True:
            name, values = lent._ask("acquire_value_set", lent.caller, *tags)
            if name:
                lent.name, lent.testbed = str(name), str(values.get(TESTBED, ""))
                if not lent.testbed:
                    lent.close()
                    raise ConfigError(f"pabot's value set '{shortened(name)}' names no testbed; {_EXAMPLE}")
                return lent
            why = f"other suites have all that pabot lends{' with the tags ' * bool(tags)}{', '.join(tags)}"
            if progress.is_over:
                raise TestbedError(
                    f"no testbed of pool '{pool}' was free for {duration_text(limit)}: {why}; run fewer suites at once"
                    " ('pabot --processes'), or give 'wait' of the pool more time"
                )
            progress.note(why)
            time.sleep(POLL)

    def close(self) -> None:
        """Give it back. Harmless when repeated, and when pabot has ended."""
        with contextlib.suppress(TestbedError, ConfigError):
            self._ask("release_value_set", self.caller)

    def _ask(self, what: str, *arguments: object) -> Any:
        """Raises ConfigError if there is no such set, TestbedError if pabot does not answer."""
        try:
            return self.remote.run_keyword(what, arguments, {})
        except RuntimeError as error:
            text = shortened(" ".join(str(error).split()))
            if "never imported" in text or "No value set matching" in text:
                raise ConfigError(f"{text}; {_EXAMPLE}") from None
            if "already reserved" in text:
                raise ConfigError(f"{text}; remove the suite's own 'Acquire Value Set'") from None
            raise TestbedError(f"pabot's server does not lend testbeds: {text}") from None
