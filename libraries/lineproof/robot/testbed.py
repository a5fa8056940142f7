"""Keywords that open and close the testbed."""

from __future__ import annotations

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
from ..methods.budget import duration_text
from ..session.plan import Plan
from ..session.session import Session
from ..simulation.faults import parse_fault
from ..testbed.lab.place import LabPlace
from ..units import counted
from . import suite_sentences
from .lending import say
from .run_variables import check_run_variables, secrets_of_variables
from .sentence_check import check_sentences, misfit_words
from .shared import Component, show_simulated


class TestbedKeywords(Component):
    """Reads a testbed's files, checks every sentence of the suite against it, and opens and closes it."""

    @keyword(tags=["testbed"])
    def read_plan(
        self, platform: str, software: str | None, testbed: str, goal: str, calibrations: str | None = None
    ) -> Plan:
        """Read platform, testbed, goal and profiles from ``variables/``. Starts nothing.

        *calibrations*: the folder that ``lineproof calibrate`` wrote to; else the project's ``results/calibrations``.

        *software* None takes the first that the platform lists. An unknown name or key fails with file, line and what
        is expected. Example:
        | ${plan} =    Read Plan    netgate6100    vpp    simulated    standard
        """
        self.shared.interruption.watch()
        check_run_variables()
        project = self.shared.project
        folder = Path(calibrations) if calibrations else project.results / FOLDER
        plan = replace(Plan.read(project, platform, software, testbed, goal, folder), secrets=secrets_of_variables())
        logger.info(f"{plan.platform.description}, {plan.software_name} {plan.software.version}; {plan.goal}")
        for layers, name in ((project.platforms, platform), (project.testbeds, testbed), (project.goals, goal)):
            logger.info(f"read {layers / f'{name}.yaml'}")
        for words in plan.replaced:
            logger.warn(words)
        profiles = sorted(str(path) for path in project.profiles.glob("*.yaml"))
        logger.info(f"traffic words from {', '.join(profiles)}")
        return plan

    @keyword(tags=["testbed"])
    def check_sentences_of_suite(self, plan: Plan) -> None:
        """Parse every sentence of the running suite, as far as it was selected, before any traffic is sent.

        In tests, the suite file's own keywords, set-ups, tear-downs, templates, the bodies of IF, FOR and TRY, and
        calls by `Run Keyword` and the like; not calls by `Run Keyword And Expect Error`, `… Ignore Error` and `…
        Return Status`, nor sentences with a variable that is set during the run. In ``__init__.robot``: in every file
        of the folder.

        Prints on the console how much traffic the sentences take, and what the goal asks of each.

        Fails with file and line of each sentence that is not understood, asks more than the ports can carry, or is no
        sentence to Robot because it compares nothing or has two spaces inside. Example:
        | Check Sentences Of Suite    ${plan}
        """
        suite = self._running_suite()
        own = suite_sentences.own_keywords(suite)
        problems, requirements = check_sentences(
            suite_sentences.steps(suite), own, plan.catalogue, plan.requirement, _is_keyword
        )
        if problems:
            raise ConfigError("; ".join(problems))
        for words in misfit_words(plan, requirements):
            logger.warn(words)
        if requirements:
            logger.console(_budget_words(plan, requirements) + _margin_words(requirements))

    def _running_suite(self) -> TestSuite:
        """The suite with the tests that were selected, or its file where the library was imported while it ran."""
        source, suite = Path(BuiltIn().get_variable_value("${SUITE SOURCE}")), self.shared.suite
        return suite if suite is not None and suite.source == source else TestSuite.from_file_system(source)

    @keyword(tags=["testbed"])
    def testbed_should_be_open(self) -> None:
        """Fail with the missing lines of the suite if no testbed was opened. Example:
        | Testbed Should Be Open
        """
        _ = self.shared.session

    @keyword(tags=["testbed"])
    def start_testbed(self, plan: Plan) -> None:
        """Remove what a killed run has left, wait until the testbed is free, and start its processes, if it has any.

        A testbed with ``lab`` in its file is acquired from labgrid. What is waited for is on the console.

        Fails if one does not start, with everything ended again. Example:
        | ${plan} =    Read Plan    netgate6100    vpp    simulated    quick
        | Start Testbed    ${plan}
        """
        lent = self.shared.lent_to_suite()
        session = Session.start(plan, lab=lent if isinstance(lent, LabPlace) else None, say=say)
        self.shared.opened.append((str(BuiltIn().get_variable_value("${SUITE NAME}")), session))
        if session.simulated:
            show_simulated(session)

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
    budget = plan.budget(requirements)
    wall = budget.wall_seconds(plan.clock_speed)
    in_real_time = f"; {duration_text(wall)} of real time on this simulated clock" if plan.clock_speed != 1 else ""
    count = f"{len(requirements)} sentences" if len(requirements) > 1 else "1 sentence"
    passing, most = duration_text(budget.until_pass), duration_text(budget.at_most)
    idle = f", and {duration_text(budget.beside)} for the power without traffic" if budget.beside else ""
    return (
        f"\n{count}, goal '{plan.goal.goal}': {passing} of traffic if every one passes at once, at most"
        f" {most}{idle}{in_real_time}\n{plan.goal}"
    )


def _margin_words(requirements: list[Requirement]) -> str:
    """Return what the searches for margins add; "" where the run asks for none."""
    values = (BuiltIn().get_variable_value(f"${{{name}}}") for name in ("MARGIN", "MARGIN_DEADLINE"))
    wanted, deadline = (str(value).strip().lower() for value in values)
    count = sum(item.quantity.margin == "higher loads" for item in requirements)
    if wanted not in ("on", "true") or not count:
        return ""
    limit = "without a limit" if deadline == "none" else f"at most {duration_text(timestr_to_secs(deadline))}"
    return f"; a search for the margin after each PASS of {counted(count, 'rate')}, {limit}"


def _is_keyword(name: str) -> bool:
    return bool(BuiltIn().run_keyword_and_return_status("Keyword Should Exist", name))


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
