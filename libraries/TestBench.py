"""Keywords that start and end the test bench."""

from __future__ import annotations

from pathlib import Path

from robot.api import TestSuite, logger
from robot.api.deco import keyword, library
from robot.libraries.BuiltIn import BuiltIn, RobotNotRunningError
from robot.running.model import Keyword

from linerate.errors import ConfigError, SentenceError
from linerate.project import Project
from linerate.requirement import is_sentence
from linerate.session import Plan, Session


@library(scope="GLOBAL", version="0.1")
class TestBench:
    """Reads what a bench consists of, checks every sentence of the suite against it, and starts and ends it."""

    def __init__(self, project: str) -> None:
        self._root = Path(project)
        self._open: list[Session] = []

    @keyword
    def read_plan(self, platform: str, software: str | None, testbed: str, goal: str) -> Plan:
        """Read platform, testbed, goal and profiles from ``variables/``. Starts nothing.

        *software* None takes the first that the platform lists. An unknown name or key fails, naming the file, the
        line and what would be right.
        """
        plan = Plan.read(Project.find(self._root), platform, software, testbed, goal)
        logger.info(f"{plan.platform.description}, {plan.software_name} {plan.software.version}; {plan.goal}")
        return plan

    @keyword
    def check_sentences_of_suite(self, plan: Plan) -> None:
        """Understand every sentence of the running suite before any traffic is sent.

        Fails naming file and line of each sentence that is not understood or asks more than the ports can carry.
        """
        built_in = BuiltIn()
        source = built_in.get_variable_value("${SUITE SOURCE}")
        wrong = []
        for step in _steps(TestSuite.from_file_system(source)):
            if not is_sentence(step.name or ""):
                continue
            try:
                sentence = str(built_in.replace_variables(step.name))
            except RobotNotRunningError:
                raise
            except Exception:  # a variable that only exists later, such as a loop's: judged when its turn comes
                logger.debug(f"not checked before the run: {step.name}")
                continue
            try:
                plan.requirement(sentence)
            except SentenceError as error:
                wrong.append(f"{source}:{step.lineno}: {error}")
        if wrong:
            raise ConfigError("; ".join(wrong))

    @keyword
    def start_bench(self, plan: Plan) -> Session:
        """Start what the testbed consists of (nothing on hardware) and return it for the other keywords.

        Clears away what an earlier run that was killed has left.
        """
        session = Session.start(plan)
        self._open.append(session)
        if session.simulated:
            logger.console(f"\nSIMULATED: {session.bench.facts.label}; nothing here is a measurement of a router.")
        return session

    @keyword
    def end_bench(self, bench: Session | None) -> None:
        """Stop traffic, release ports, restore the router and end every process. Harmless when repeated."""
        if bench is not None:
            bench.close()
            if bench in self._open:
                self._open.remove(bench)

    def close(self) -> None:
        """Robot calls this at the end: whatever a suite left open is closed."""
        while self._open:
            self._open.pop().close()


def _steps(suite: TestSuite) -> list[Keyword]:
    found: list[Keyword] = []

    def walk(body: object) -> None:
        for item in body:  # type: ignore[attr-defined]
            if isinstance(item, Keyword):
                found.append(item)
            elif hasattr(item, "body"):
                walk(item.body)

    for test in suite.all_tests:
        walk(test.body)
    return found
