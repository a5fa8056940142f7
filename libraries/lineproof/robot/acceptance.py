"""Keywords that judge SLA sentences and keep the evidence."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from robot.api import logger
from robot.api.deco import keyword
from robot.errors import RobotError
from robot.libraries.BuiltIn import BuiltIn

from ..core.deciding import Standing
from ..core.quantity import Requirement
from ..core.rule import Ruling
from ..core.trial import Trial
from ..core.verdict import Try, Verdict
from ..errors import BREAKDOWN_ERRORS, Inconclusive, LineproofError, SlaFailure, in_words
from ..evidence import allure
from ..evidence.document import as_html
from ..evidence.environment import environment_record
from ..evidence.forms import ledgers_document, trials_document
from ..evidence.pictures import plot_name, sentence_plot
from ..evidence.recorder import SLA, Recorder
from ..evidence.records import SIMULATED_BECAUSE, TrialRecord
from ..evidence.resume import FINGERPRINTS, EarlierRun, earlier_tries, fingerprints, why_apart
from ..evidence.started_as import STARTED_AS
from ..evidence.summary import DESCRIPTION, ExecutionSummary, RunSummary, summarise
from ..evidence.summary_forms import summary
from ..evidence.svg import svg_image
from ..session.judging import Judge
from ..session.progress import Progress
from ..system.cpu_clock import cpu_times, steal_percent
from ..testbed.lab.place import LABGRID
from ..testbed.opening import OpenTestbed
from ..units import si
from . import suite_sentences
from .execution import beside_others, closing_words, execution_id, started_as
from .shared import Component, RunLabels, Shared, show_document


class AcceptanceKeywords(Component):
    """Judges SLA sentences: PASS, FAIL or INCONCLUSIVE, each with its evidence.

    Evidence goes to ``results/<run id>/``, Allure results to ``results/<run id>/allure``, without any flag. A further
    suite of the same execution has its own folder, ``<run id>-2`` and so on; its Allure results join the first's.
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._testbed: OpenTestbed | None = None
        self._earlier: EarlierRun | None = None
        self._apart = self._begins_at_1 = ""
        self._carried: list[TrialRecord] = []
        self._tries: dict[str, list[Try]] = {}
        self._cpu: Any = None
        self._judging = ""
        self._warm_up: Trial | None = None
        self._alone = True
        self._summaries: dict[Path, RunSummary] = {}

    @cached_property
    def execution_folder(self) -> Path:
        """The folder of this execution's first run."""
        self._alone = not beside_others()
        return self.shared.results / execution_id()

    @property
    def allure_folder(self) -> Path:
        """Where this execution's Allure results go."""
        return self.execution_folder / "allure"

    def last_words(self) -> str:
        """What stays on the console when the execution is over: where the evidence is. Empty if there is none."""
        if "execution_folder" not in vars(self):
            return ""
        if self.allure_folder.is_dir() and not (self.allure_folder / "allurerc.json").exists():
            allure.write_categories(self.allure_folder)  # no testbed was opened
        return closing_words(self.execution_folder, self._summaries, self._alone)

    @keyword(tags=["evidence"])
    def describe_run(self, resume: str = "") -> None:
        """Open the run's folder, and describe the run in the log, in Allure and in the records.

        *resume*: the id of an earlier run whose trials are evidence too. Example:
        | Describe Run    resume=20261121T120000Z-1a2b3c
        """
        session = self.shared.session
        suite = str(BuiltIn().get_variable_value("${SUITE NAME}"))
        self._earlier = EarlierRun.find(self.shared.results, resume, suite) if resume else None
        plan, facts = session.plan, session.testbed.facts
        record = environment_record(
            plan,
            self.execution_folder.name,
            simulated=session.simulated,
            clock_speed=facts.clock_speed,
            extra={
                "suite": suite,
                **(
                    {SLA: str(sla)} if (sla := BuiltIn().get_variable_value("&{SUITE METADATA}", {}).get("SLA")) else {}
                ),
                DESCRIPTION: plan.platform.description,
                FINGERPRINTS: fingerprints(plan),
                **({"replaced": list(plan.replaced)} if plan.replaced else {}),
                **({SIMULATED_BECAUSE: list(session.simulation_signs)} if session.simulated else {}),
                STARTED_AS: started_as(self.shared.suite, plan.testbed.testbed).record(),
                **({"resumed_from": self._earlier.environment.run} if self._earlier else {}),
                **({LABGRID: session.testbed.lab.record()} if session.testbed.lab else {}),
            },
        )
        self.shared.progress = Progress(sys.__stderr__, facts.clock_speed)
        self._cpu = cpu_times()
        self.shared.recorder = Recorder(self.execution_folder.parent, record.run, record)
        self.shared.recorder.keep_inputs(plan)
        self._testbed = session.testbed
        words = {
            "Platform": f"{plan.platform.platform} ({plan.platform.description})",
            "Software": f"{plan.software_name} {plan.software.version}",
            "Goal": str(plan.goal),
            # a name of its own: 'rebot --merge' keeps those of both runs
            f"Evidence {self.shared.recorder.folder.run_id}": str(self.shared.recorder.folder.path),
        }
        self.shared.labels = RunLabels(session, self.shared.recorder, self.allure_folder, words)
        self.shared.labels.show()

    @keyword(tags=["evidence"])
    def note_parts(self) -> None:
        """Keep and show the versions of generator and router, and the router's configuration.

        A run that is gone on with is no evidence if it had others. Example:
        | Note Parts
        """
        session = self.shared.session
        versions, configuration = session.versions(), session.router.configuration()
        recorder, headroom, known = self.shared.records, session.generator.headroom, session.generator.known_limits
        recorder.keep_parts(
            versions,
            configuration,
            headroom.record() if headroom else None,
            known.record() if known else None,
            session.generator.ports,
            session.interfaces,
            None if session.router.is_black_box else session.router.facts,
            None if (host := session.testbed.host) is None or host.problem else host.facts,
            session.router.host_key,
        )
        if self.shared.labels is not None:
            self.shared.labels.show_router()
        logger.info(str(known or "the generator is not connected: its card is not known"))
        if headroom is None:
            logger.info("the generator is not calibrated: its own limits are not known (lineproof calibrate)")
        else:
            logger.write(str(headroom), "WARN" if headroom.why_unfit or headroom.why_stale else "INFO")
        self._tries, self._apart = earlier_tries(recorder.folder.path.parent, recorder.environment), ""
        if (earlier := self._earlier) is not None:
            recorder.folder.copy_missing(earlier.path)
            differences = why_apart(earlier.environment, recorder.environment)
            self._apart = "; ".join(differences[:2]) + (f" (and {len(differences) - 2} more)" * (len(differences) > 2))
            begins = f"begins at 1: {self._apart}" if self._apart else "begins with its trials"
            logger.console(f"goes on with run {earlier.environment.run}: evidence {begins}")
        for name, value in {**versions, **configuration}.items():
            logger.info(f"{name}: {value}")

    @keyword(tags=["sentences"])
    def read_requirement(self, sentence: str) -> Requirement:
        """Parse the SLA *sentence* and check it against the ports. Sends nothing.

        Fails saying what was not understood and what is expected. Example:
        | ${requirement} =    Read Requirement    64b 1-flow unidirectional ≥ 5 Mpps
        """
        session = self.shared.session
        requirement = session.plan.requirement(suite_sentences.without_prefix(sentence))
        line = requirement.profile.line_rate_pps(session.link_bps)
        load = session.traffic.load_for(requirement)
        logger.info(f"line rate of {requirement.profile.name}: {si(line, 'pps')} in each direction")
        logger.info(f"load: {si(load.pps, 'pps')} into each of {requirement.directions} port(s)")
        return requirement

    @keyword(tags=["sentences"])
    def verdict_of_earlier_runs(self, requirement: Requirement) -> Verdict | None:
        """The verdict that the trials of the run that is gone on with have reached, without any traffic; None: none.

        They are evidence for this sentence from now on, until `Keep Evidence`. Example:
        | ${verdict} =    Verdict Of Earlier Runs    ${requirement}
        """
        self._begins_at_1 = self._apart
        if self._earlier is None or self._apart:
            return None
        self._carried = self._earlier.take(str(BuiltIn().get_variable_value("${TEST NAME}")), requirement.sentence)
        judge, trials = Judge(self.shared.session), [record.trial for record in self._carried]
        verdict = judge.decided(requirement, trials)
        if verdict is not None:
            self.begin_evidence(requirement)
        elif judge.must_begin_again(requirement, trials):
            self._carried, self._begins_at_1 = [], "a soak promises all of its time"
        return verdict

    @keyword(tags=["evidence"])
    def begin_evidence(self, requirement: Requirement) -> None:
        """Begin the record of a sentence, to which everything belongs until `Keep Evidence`. Example:
        | Begin Evidence    ${requirement}
        """
        session = self.shared.session
        load = session.traffic.load_for(requirement)
        logger.info(f"judged by {session.plan.goal}")
        self.shared.progress.begin(requirement.sentence, load.pps)
        value = BuiltIn().get_variable_value
        about = {
            "documentation": str(value("${TEST DOCUMENTATION}")),
            "tags": [str(tag) for tag in value("@{TEST TAGS}")],
        }
        self.shared.records.begin(str(value("${TEST NAME}")), about)
        for record in self._carried:
            self.shared.records.carry(record)
        self._judging, self._warm_up = requirement.sentence, None

    @keyword(tags=["trials"])
    def warm_up(self, requirement: Requirement) -> None:
        """Send the sentence's load for the goal's warm-up time. The trial is kept as trial 0 and not judged.

        It shows how much load and how long trials this testbed needs. Fails if the testbed breaks down. Example:
        | Warm Up    ${requirement}
        """
        session = self.shared.session
        trial = self._warm_up = session.traffic.warm_up(requirement)
        if trial is not None:
            self.shared.records.keep_trial(requirement, trial, session.link_bps, session.generator.streams)
            logger.info(f"warm-up: offered {trial.offered} frames, lost {trial.lost}")

    @keyword(tags=["trials"])
    def run_trials_until_decided(self, requirement: Requirement, soak: str = "part") -> Verdict:
        """Offer the sentence's load in trials until the goal's rule decides, between two readings of the router.

        Each trial is on the disk before the next begins. Never fails: a testbed that breaks down gives INCONCLUSIVE.
        *soak*: ``whole`` goes on with a soak that can no longer pass, and has not failed; ``part`` ends it.
        Example:
        | ${verdict} =    Run Trials Until Decided    ${requirement}
        """
        session = self.shared.session
        recorder = self.shared.records

        def on_trial(trial: Trial, standing: Standing) -> None:
            streams = session.generator.streams
            record = recorder.keep_trial(requirement, trial, session.link_bps, streams, standing.last)
            self.shared.progress.trial(trial, standing)
            logger.info(_trial_words(trial, standing))
            for sizes in record.frame_sizes:
                if not sizes.explained:
                    logger.info(str(sizes))

        listeners = (on_trial, recorder.keep_telemetry, recorder.keep_reading, recorder.keep_step_down)
        whole = soak.strip().lower() == "whole"
        earlier = [record.trial for record in self._carried]
        return Judge(session, *listeners, whole_soak=whole).judge(requirement, self._warm_up, earlier)

    @keyword(tags=["sentences"])
    def inconclusive_verdict(self, requirement: Requirement, reason: str) -> Verdict:
        """The verdict INCONCLUSIVE, because of *reason*. Example:
        | ${verdict} =    Inconclusive Verdict    ${requirement}    the power failed
        """
        return replace(Judge(self.shared.session).inconclusive(requirement, reason), breakdown=reason)

    @keyword(tags=["evidence"])
    def keep_evidence(self, verdict: Verdict) -> Verdict:
        """Write the requirement's record and attach its trials to the report, as a table and as a plot.

        Returns the verdict with what earlier runs say of the same sentence. Example:
        | ${verdict} =    Keep Evidence    ${verdict}
        """
        session = self.shared.session
        self.shared.progress.end()
        recorder = self.shared.records
        notes = "; ".join(filter(None, [session.traffic.reconnection.note, session.revival.note]))
        tries = tuple(
            item for item in self._tries.get(verdict.requirement.sentence, ()) if item.run not in verdict.runs
        )
        verdict, self._carried = replace(verdict, tries=tries, begins_at_1=self._begins_at_1), []
        record = recorder.keep_verdict(verdict, session.tolerance, notes)
        spent = recorder.seconds
        words = ", ".join(f"{name} {seconds}" for name, seconds in spent.items())
        logger.info(f"time of the sentence: {words} (traffic and drains by the testbed's clock)")
        self._judging = ""
        requirement = verdict.requirement
        title = f"{verdict.ruling.value}: {requirement.sentence}"
        if verdict.trials:
            shown = (verdict.trials, requirement.profile, session.link_bps, title, session.simulated)
            show_document("Trials", trials_document(*shown))
            name = plot_name(requirement)
            _show_plot(name, lambda: sentence_plot(record, *shown, step_downs=recorder.step_downs))
        if verdict.ledgers:
            title = f"Where frames went: {requirement.sentence}"
            show_document("Where frames went", ledgers_document(verdict.ledgers, title, session.simulated))
        if verdict.why.explanation:
            allure.attach_text("Why", "\n".join(verdict.why.explanation.lines))
        allure.attach_text("Verdict", verdict.message)
        if notes:
            allure.attach_text("Reconnection", notes)
        return verdict

    @keyword(tags=["sentences"])
    def traffic_to_characterise(self, verdict: Verdict, when: Literal["never", "on failure", "always"]) -> str:
        """The sentence's traffic and direction if its actual capacity is to be searched for; else empty.

        *when*: ``never``, ``on failure`` or ``always``. Only rates and losses have a capacity; after INCONCLUSIVE
        nothing is searched for. Example:
        | ${traffic} =    Traffic To Characterise    ${verdict}    on failure
        """
        requirement = verdict.requirement
        wanted = {"never": (), "on failure": (Ruling.FAIL,), "always": (Ruling.FAIL, Ruling.PASS)}[when]
        if verdict.ruling not in wanted or not requirement.quantity.has_capacity:
            return ""
        return requirement.traffic

    @keyword(tags=["sentences"])
    def verdict_should_be_pass(self, verdict: Verdict, *more: str) -> None:
        """Pass, or fail with ``FAIL:`` (the router's fault) or ``INCONCLUSIVE:`` (the testbed proved nothing).

        *more*: further lines of the message. Example:
        | Verdict Should Be Pass    ${verdict}
        """
        message = "\n  ".join(filter(None, [verdict.message, *more]))
        if verdict.ruling is Ruling.FAIL:
            raise SlaFailure(message)
        if verdict.ruling is Ruling.INCONCLUSIVE:
            raise Inconclusive(message)
        logger.info(message)
        BuiltIn().set_test_message(message, append=True, separator="\n")

    @keyword(tags=["evidence"])
    def close_evidence(self) -> None:
        """Record the end of the run and write the manifest of its files. Harmless when repeated. Example:
        | Close Evidence
        """
        self.shared.progress.end()
        recorder, self.shared.recorder, self.shared.labels = self.shared.recorder, None, None
        testbed, self._testbed = self._testbed, None
        if recorder is not None:
            folder = recorder.folder.path
            # a teardown that fails turns every PASS of the suite red, and the verdicts are on the disk
            try:
                recorder.folder.add_telemetry(0, "logs", testbed.logs if testbed is not None else {})
                records = recorder.close(steal_percent(self._cpu, cpu_times()), self._judging, _failed_setup())
                logger.info(f"SHA-256 of the records in {folder}: {records}", also_console=True)
            except (LineproofError, OSError) as error:
                logger.warn(f"the run's folder is not complete, the verdicts above stay: {in_words(error)}")
            self._judging = ""
            try:
                found = self._summaries[folder] = summarise(folder)
                logger.info(as_html(summary(ExecutionSummary((found,)))), html=True)
            except RobotError:  # an interrupt
                raise
            except BREAKDOWN_ERRORS as error:
                logger.warn(f"no summary of the run: {in_words(error)}")
        self.shared.interruption.pass_on()


def _failed_setup() -> str:
    """Why the suite's set-up failed, which Robot says in a teardown; "" where it did not."""
    words = str(BuiltIn().get_variable_value("${SUITE MESSAGE}") or "")
    _, failed, reason = words.partition("setup failed:")
    return reason.partition("\n\n")[0].strip() if failed else ""


def _show_plot(name: str, draw: Callable[[], str]) -> None:
    """Show the picture *name* that *draw* returns. It is made of the records: without it the verdict is the same."""
    try:
        plot = draw()
    except RobotError:  # an interrupt
        raise
    except Exception as error:  # a picture must not cost a verdict
        logger.warn(f"no plot of the trials: {in_words(error)}")
        return
    allure.attach_svg(name, plot)
    allure.show_svg(name, plot)
    logger.info(svg_image(name, plot), html=True)


def _trial_words(trial: Trial, standing: Standing) -> str:
    lines = [
        f"trial {trial.number}: {trial.outcome.duration:g} s, offered {trial.offered} of {trial.intended} frames,"
        f" forwarded {trial.forwarded}, lost {trial.lost}",
        *map(str, trial.problems),
        f"so far {standing.keeps} good, {standing.misses} bad, {standing.unknown} open",
    ]
    return "\n  ".join(lines)
