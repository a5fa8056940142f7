"""Keywords that start and end the testbed."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from robot.api import TestSuite, logger
from robot.api.deco import keyword, library
from robot.libraries.BuiltIn import BuiltIn, RobotNotRunningError

from linerate.robot import suite_sentences as suite_sentences

from ..ceilings.calibration import FOLDER
from ..errors import ConfigError, SentenceError
from ..methods.budget import clock
from ..project import Project
from ..session.plan import Plan
from ..session.session import Session
from ..sla.requirement import Requirement


@library(scope="GLOBAL", version="0.1")
class TestBench:
    """Reads what a testbed consists of, checks every sentence of the suite against it, and starts and ends it."""

    __test__ = False  # its name starts as pytest's classes do

    def __init__(self, project: str) -> None:
        """*project* is the folder that holds ``variables/``, or one below it. Nothing is read or started yet."""
        self._root = Path(project)
        self._open: list[Session] = []

    @keyword
    def read_plan(
        self, platform: str, software: str | None, testbed: str, goal: str, calibrations: str | None = None
    ) -> Plan:
        """Read platform, testbed, goal and profiles from ``variables/``. Starts nothing.

        *calibrations*: the folder that ``linerate calibrate`` wrote to; default the project's ``results/calibrations``.

        *software* None takes the first that the platform lists. An unknown name or key fails, naming the file, the
        line and what would be right.
        """
        project = Project.find(self._root)
        folder = Path(calibrations) if calibrations else project.results / FOLDER
        plan = Plan.read(project, platform, software, testbed, goal, folder)
        logger.info(f"{plan.platform.description}, {plan.software_name} {plan.software.version}; {plan.goal}")
        return plan

    @keyword
    def check_sentences_of_suite(self, plan: Plan) -> None:
        """Understand every sentence of the running suite before any traffic is sent.

        Looked at are tests, the suite file's own keywords, set-ups, tear-downs, templates, the bodies of IF, FOR and
        TRY, and what `Run Keyword` and its like call; not what `Run Keyword And Expect Error`, `… Ignore Error` and
        `… Return Status` call, nor sentences with a variable that only the run sets. In ``__init__.robot`` it is every
        file of the folder.

        Says on the console how much traffic the file's sentences take.

        Fails naming file and line of each sentence that is not understood, asks more than the ports can carry, or is
        no sentence to Robot because it compares nothing or has two spaces inside.
        """
        suite = TestSuite.from_file_system(BuiltIn().get_variable_value("${SUITE SOURCE}"))
        own = suite_sentences.own_keywords(suite)
        wrong, understood = [], []
        for step in suite_sentences.steps(suite):
            if suite_sentences.plain(step.name) in own:
                continue
            problem = suite_sentences.malformed(step, plan.catalogue, _is_keyword)
            try:
                requirement = None if problem else _understood(step, plan)
            except SentenceError as error:
                problem = str(error)
            if problem:
                wrong.append(f"{step.where}: {problem}")
            elif requirement is not None:
                understood.append(requirement)
        if wrong:
            raise ConfigError("; ".join(wrong))
        if understood:
            logger.console(_budget_words(plan, understood))

    @keyword
    def bench_should_be_open(self, session: Session | None) -> None:
        """Fail with the line that the suite lacks, where no testbed was opened."""
        if session is None:
            source = BuiltIn().get_variable_value("${SUITE SOURCE}")
            raise ConfigError(
                "no testbed is open; the suite's settings need 'Suite Setup    Open Testbed For    <platform>' and"
                " 'Suite Teardown    Close Testbed', as the suites in tests/ have",
                source,
            )

    @keyword
    def router_interface(self, session: Session, side: int) -> str:
        """The router's name for its interface on *side* (0 or 1: towards the generator's first or second port)."""
        sides = session.testbed.facts.sides
        if not 0 <= side < len(sides):
            raise ConfigError(f"the router has no side {side}; expected 0 to {len(sides) - 1}")
        return sides[side].interface

    @keyword
    def start_bench(self, plan: Plan) -> Session:
        """Start what the testbed consists of (nothing on hardware) and return it for the other keywords.

        Clears away what an earlier run that was killed has left.
        """
        session = Session.start(plan)
        self._open.append(session)
        if session.simulated:
            logger.console(f"\nSIMULATED: {session.testbed.facts.label}; nothing here is a measurement of a router.")
        return session

    @keyword
    def end_bench(self, session: Session | None) -> None:
        """Stop traffic, release ports, restore the router and end every process. Harmless when repeated."""
        if session is not None:
            session.close()
            if session in self._open:
                self._open.remove(session)

    def close(self) -> None:
        """Robot calls this at the end: whatever a suite left open is closed, each even where one before it fails."""
        with ExitStack() as stack:
            while self._open:
                stack.callback(self._open.pop(0).close)


def _budget_words(plan: Plan, requirements: list[Requirement]) -> str:
    budget = plan.budget(requirements)
    wall = budget.wall(plan.clock_speed)
    on_wall = f"; {clock(wall)} of the wall on this simulated clock" if plan.clock_speed != 1 else ""
    count = f"{len(requirements)} sentences" if len(requirements) > 1 else "1 sentence"
    return (
        f"\n{count}, goal '{plan.goal.goal}': {clock(budget.passing)} of traffic if every one passes at once, at most"
        f" {clock(budget.most)}{on_wall}"
    )


def _understood(step: suite_sentences.KeywordCall, plan: Plan) -> Requirement | None:
    """The requirement that *step* judges; None: none, or only the run will know. Raises SentenceError."""
    text = suite_sentences.sentence(step)
    if text is None or step.needs_the_run():
        return None
    try:
        sentence = str(BuiltIn().replace_variables(text))
    except RobotNotRunningError:
        raise
    except Exception:  # a variable that only exists later: judged when its turn comes
        logger.debug(f"not checked before the run: {text}")
        return None
    return plan.requirement(sentence)


def _is_keyword(name: str) -> bool:
    return bool(BuiltIn().run_keyword_and_return_status("Keyword Should Exist", name))
