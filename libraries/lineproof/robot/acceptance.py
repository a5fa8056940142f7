"""Keywords that judge SLA sentences and keep the evidence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from robot.api import logger
from robot.api.deco import keyword
from robot.errors import RobotError
from robot.libraries.BuiltIn import BuiltIn
from robot.running.context import EXECUTION_CONTEXTS

from ..core.quantity import Requirement
from ..core.rule import Ruling
from ..core.step_down import StepDown
from ..core.trial import Fault
from ..core.verdict import Try, Verdict
from ..documents.chart import svg_image
from ..documents.document import as_html, as_page
from ..errors import BREAKDOWN_ERRORS, Inconclusive, LineproofError, SlaFailure, in_words
from ..evidence import allure
from ..evidence.forms import ledgers_document, trials_document
from ..evidence.pictures import plot_name, sentence_plot
from ..evidence.recorder import Recorder, environment_record
from ..evidence.records import RequirementRecord, TrialRecord, unexpected
from ..evidence.resume import EarlierRun, earlier_tries, fingerprints, why_apart
from ..evidence.run import read_run
from ..evidence.summary import ExecutionSummary, RunSummary, summary, summary_of
from ..session.judging import EndedTrial, Reading, decided, judge
from ..session.session import Session
from ..system.cpu_clock import cpu_times, steal_percent
from ..testbed.lab import LABGRID
from ..units import si
from ..visible import shortened
from .sentences import without_prefix
from .shared import (
    WIDTH,
    Component,
    Judged,
    RunLabels,
    Shared,
    add_to_test_message,
    closing_words,
    execution_id,
    narrow,
    say,
    show_document,
)


class AcceptanceKeywords(Component):
    """Judges SLA sentences: PASS, FAIL or INCONCLUSIVE, each with its evidence.

    Evidence goes to ``results/<run id>/``, Allure results to ``results/<run id>/allure``, without any flag. A further
    suite of the same execution has its own folder, ``<run id>-2`` and so on; its Allure results join the first's.
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._session: Session | None = None
        self._earlier: EarlierRun | None = None
        self._apart = self._begins_at_1 = ""
        self._tries: dict[tuple[str, str], list[Try]] = {}
        self._cpu: Any = None
        self._judging = ""
        self._closed: dict[Path, RunSummary] = {}

    @cached_property
    def execution_folder(self) -> Path:
        """The folder of this execution's first run."""
        return self.shared.results / execution_id()

    @property
    def allure_folder(self) -> Path:
        """Where this execution's Allure results go."""
        return self.execution_folder / "allure"

    def last_words(self) -> str:
        """Return the last words on the console: where the evidence is. Empty if there is none."""
        if "execution_folder" not in vars(self):
            return ""
        if self.allure_folder.is_dir() and not (self.allure_folder / "allurerc.json").exists():
            allure.write_categories(self.allure_folder)  # no testbed was opened
        return closing_words(self.execution_folder, self._closed)

    def describe_run(self, resume: str) -> None:
        """Open the run's folder, and describe the run. *resume*: the id of a run whose trials are evidence too."""
        session = self.shared.session
        suite = self.shared.suite_name
        self._earlier = EarlierRun.find(self.shared.results, resume, suite) if resume else None
        plan, facts = session.plan, session.testbed.facts
        extra = {
            "suite": str(EXECUTION_CONTEXTS.top.suite.source or ""),  # what Robot was asked to run
            "replaced": list(plan.replaced),
            "resumed_from": self._earlier.environment.run if self._earlier else "",
            LABGRID: session.testbed.lab.record() if session.testbed.lab else {},
        }
        record = environment_record(
            plan,
            self.execution_folder.name,
            simulated=session.simulated,
            clock_speed=facts.clock_speed,
            suite=suite,
            sla=str(BuiltIn().get_variable_value("&{SUITE METADATA}", {}).get("SLA", "")),
            description=plan.platform.description,
            fingerprints=fingerprints(plan),
            extra={key: value for key, value in extra.items() if value},
            simulated_because=tuple(session.simulation_signs) if session.simulated else (),
        )
        self._cpu = cpu_times()
        self.shared.recorder = Recorder(self.execution_folder.parent, record.run, record)
        self.shared.recorder.keep_inputs(plan)
        self._session = session
        labels = {
            "Platform": f"{plan.platform.platform} ({plan.platform.description})",
            "Software": f"{plan.software_name} {plan.software.version}",
            "Goal": str(plan.goal),
            # a name of its own: 'rebot --merge' keeps those of both runs
            f"Evidence {self.shared.recorder.folder.run_id}": str(self.shared.recorder.folder.path),
        }
        self.shared.labels = RunLabels(session, self.shared.recorder, self.allure_folder, labels)
        self.shared.labels.show()

    def note_parts(self) -> None:
        """Keep and show the versions of generator and router, and the router's configuration."""
        session = self.shared.session
        versions, configuration = session.versions(), session.router.configuration()
        recorder, headroom, known = self.shared.records, session.generator.headroom, session.generator.known_limits
        recorder.keep_parts(session, versions, configuration)
        if self.shared.labels is not None:
            declared = session.plan.software.version
            version = versions.get("router.version", declared)
            beside = "" if declared in version else f" ({declared} in the platform's file)"
            self.shared.labels.metadata["Software"] = f"{session.plan.software_name} {version}{beside}"
            self.shared.labels.show()
        logger.info(str(known or "the generator is not connected: its card is not known"))
        if headroom is None:
            logger.info("the generator is not calibrated: its own limits are not known (lineproof calibrate)")
        else:
            logger.write(str(headroom), "WARN" if headroom.why_unfit or headroom.why_stale else "INFO")
        self._tries, self._apart = earlier_tries(recorder.folder.path.parent, recorder.environment), ""
        if (earlier := self._earlier) is not None:
            for named in earlier.run.inputs.items():
                recorder.folder.add_input(*named)
            self._apart = why_apart(earlier.environment, recorder.environment)
            begins = f"begins at 1: {self._apart}" if self._apart else "begins with its trials"
            say(f"goes on with run {earlier.environment.run}: evidence {begins}")
        for name, value in {**versions, **asdict(configuration)}.items():
            for line in [value] if isinstance(value, str) else value:
                logger.info(f"{name}: {line}")

    @keyword(tags=["sentences"])
    def read_sentence(self, sentence: str, expect: Literal["PASS", "FAIL", "INCONCLUSIVE"] = "PASS") -> None:
        """Parse the SLA *sentence* and check it against the ports. Sends nothing.

        *expect*: the verdict with which the test passes. Fails saying what was not understood and what is expected.
        Example:
        | Read Sentence    64b 1-flow unidirectional ≥ 5 Mpps
        """
        session = self.shared.session
        requirement = session.plan.requirement(without_prefix(sentence))
        self.shared.judged, self.shared.shown = Judged(requirement, expect), []
        profile, load = requirement.profile, session.plan.load_for(requirement)
        line = profile.line_rate_pps(session.plan.link_bps(requirement.pairs))
        line_text = session.plan.line_text(requirement.pairs)
        logger.info(
            f"line rate of {profile.name}: {si(line, 'pps')} in each direction{f' ({line_text})' if line_text else ''}"
        )
        logger.info(f"load: {si(load.pps, 'pps')} into each of {requirement.directions} port(s)")
        count = f"{profile.flows.count} flows" if profile.flows.count else "an unknown number of flows"
        logger.info(f"{profile.name}: mean frame {profile.mean_size:g} bytes with FCS, {count}")

    @keyword(tags=["trials"])
    def judge_in_trials(self) -> None:
        """Offer the sentence's load in trials until the goal's rule decides, between two readings of the router.

        A warm-up comes first: trial 0, which is not judged. Trials of the run that is gone on with count first; where
        they decide, nothing is sent. Each trial is on the disk before the next begins. Never fails: a testbed that
        breaks down gives INCONCLUSIVE. If the trials proved nothing because the router hung, and labgrid may switch its
        power (``lab: {power: …}`` in the testbed's file), it is tried once more after that.
        Example:
        | Judge In Trials
        """
        session, judged = self.shared.session, self.shared.sentence
        carried = self._carried(judged.requirement)
        judged.verdict = verdict = self._verdict(judged, carried)
        if session.revive(verdict):
            logger.info(f"tried again; the first try was {verdict.ruling.value}: {verdict.reason}")
            judged.verdict = self._verdict(judged, carried)
        for note in filter(None, [session.traffic.reconnected, session.revived]):
            logger.warn(note)

    def _carried(self, requirement: Requirement) -> list[TrialRecord]:
        """Return the trials of the run that is gone on with, as far as they are evidence for this sentence."""
        self._begins_at_1 = self._apart
        if self._earlier is None or self._apart:
            return []
        records = self._earlier.take(str(BuiltIn().get_variable_value("${TEST NAME}")), requirement.sentence)
        trials = [record.trial for record in records]
        if trials and requirement.duration_sum and decided(self.shared.session, requirement, trials) is None:
            self._begins_at_1 = "a soak promises all of its time"
            return []
        return records

    def _verdict(self, judged: Judged, carried: Sequence[TrialRecord]) -> Verdict:
        session, recorder, value = self.shared.session, self.shared.records, BuiltIn().get_variable_value
        requirement = judged.requirement
        logger.info(f"judged by {session.plan.goal}")
        self.shared.progress.begin(requirement.sentence, session.plan.load_for(requirement).pps)
        recorder.begin(
            str(value("${TEST NAME}")),
            expected=judged.expected,
            documentation=str(value("${TEST DOCUMENTATION}")),
        )
        for record in carried:
            recorder.carry(record)
        self._judging = requirement.sentence
        listeners = recorder.listener(requirement, session), self.shared.progress.hear

        def hear(event: EndedTrial | Reading | StepDown) -> None:
            self.shared.note_simulation()  # a generator that was connected again may be another one
            for listener in listeners:
                listener(event)

        return judge(session, requirement, hear, [record.trial for record in carried])

    @keyword(tags=["evidence"])
    def keep_evidence(self) -> None:
        """Write the sentence's record, with what earlier runs say of it. Shows where frames went.

        Example:
        | Keep Evidence
        """
        session, recorder = self.shared.session, self.shared.records
        judged, verdict = self.shared.sentence, self.shared.verdict
        self.shared.progress.end()
        requirement = verdict.requirement
        earlier = self._tries.get((recorder.test, requirement.sentence), ())
        tries = tuple(tried for tried in earlier if tried.run not in verdict.runs)
        judged.verdict = verdict = replace(verdict, tries=tries, begins_at_1=self._begins_at_1)
        judged.record = recorder.keep_verdict(verdict, session.tolerance)
        self._judging = ""
        if verdict.ledgers:
            title = f"Where frames went: {requirement.sentence}"
            show_document(ledgers_document(verdict.ledgers, title, session.simulated))

    @keyword(tags=["sentences"])
    def verdict_should_be_as_expected(self) -> None:
        """Pass, or fail with ``FAIL:`` (the router's fault) or ``INCONCLUSIVE:`` (the testbed proved nothing).

        Where `Read Sentence` was told to expect another verdict than PASS, any other than that is ``INCONCLUSIVE:``.
        Shows the trials as a table, and beside the promise as a picture, with the loads of the search for the margin.
        Example:
        | Verdict Should Be As Expected
        """
        judged, verdict = self.shared.sentence, self.shared.verdict
        ruling, sentence = verdict.ruling, judged.requirement.sentence
        limit = f" ({judged.limit})" if judged.limit else ""
        carried = {"carries": f"{judged.carries}{limit}", "margin": judged.margin} if judged.carries else {}
        allure.add_parameters({"promised": sentence, **carried})
        if judged.record is not None and verdict.trials:
            told = f": carries {carried['carries']}, margin {judged.margin}" if carried else ""
            self._show_trials(judged.record, verdict, f"{ruling.value}: {sentence}{told}")
        message = narrow("\n  ".join([verdict.message, *judged.more]))
        if ruling.value == judged.expected:
            logger.info(message)
            changes = [line.rpartition(": ")[2] for line in verdict.reason.details if Fault.CHANGED.value in line]
            add_to_test_message(narrow("\n  ".join([self._line(), *changes, *judged.more])))
        elif judged.expected != Ruling.PASS.value:
            raise Inconclusive(narrow(unexpected(sentence, verdict.message, judged.expected)))
        else:
            raise (SlaFailure if ruling is Ruling.FAIL else Inconclusive)(message)

    def _line(self) -> str:
        """Return the verdict in one line, its figures at the right margin, or below where they have no room."""
        judged, verdict = self.shared.sentence, self.shared.verdict
        figure, *_ = re.split(r" \(| = | at (?!least|most)", verdict.reason.summary, maxsplit=1)
        measured = figure.replace("at least", "≥")
        if judged.carries:
            measured = f"carries {judged.carries.removesuffix(' line rate')} ({judged.margin})"
        as_expected = "" if verdict.ruling is Ruling.PASS else ", as expected"
        head = f"{verdict.ruling.value}{as_expected}: {judged.requirement.sentence}:"
        line = f"{head} {measured:>{max(0, WIDTH - len(head) - 1)}}"
        return line if len(line) <= WIDTH else f"{head}\n{measured:>{WIDTH}}"

    def _show_trials(self, record: RequirementRecord, verdict: Verdict, title: str) -> None:
        """Show the trials as a picture and as a table, made of the records: without them the verdict is the same."""
        name = plot_name(verdict.requirement)
        try:
            plot = sentence_plot(record, verdict.trials, title, record.simulated, self.shared.sentence.searched)
        except RobotError:  # an interrupt
            raise
        except Exception as error:  # a picture must not cost a verdict
            logger.warn(f"no plot of the trials: {in_words(error)}")
        else:
            allure.attach(name, plot, "SVG")
            self.shared.shown.append(svg_image(name, plot))
        table = trials_document(record, verdict.trials, title, record.simulated)
        allure.attach("Trials", as_page(table), "HTML")
        self.shared.shown.append(as_html(table))

    def close_evidence(self) -> None:
        """Record the end of the run and write the manifest of its files. Harmless when repeated."""
        self.shared.progress.end()
        recorder, self.shared.recorder, self.shared.labels = self.shared.recorder, None, None
        session, self._session = self._session, None
        if recorder is not None:
            folder = recorder.folder.path
            # a teardown that fails turns every PASS of the suite red, and the verdicts are on the disk
            try:
                recorder.folder.add_telemetry(0, "logs", session.testbed.logs if session is not None else {})
                afterwards = session.router.afterwards if session is not None else ()
                steal = steal_percent(self._cpu, cpu_times())
                unjudged = _failed_setup() or shortened("; ".join(self.shared.unjudged), 500)
                records = recorder.close(steal, self._judging, unjudged, afterwards)
                say(f"SHA-256 of the records of run {folder.name}:\n{records}")
            except (LineproofError, OSError) as error:
                logger.warn(f"the run's folder is not complete, the verdicts above stay: {in_words(error)}")
            self._judging, self.shared.unjudged = "", []
            try:
                self._closed[folder] = summary_of(read_run(folder))
                logger.info(as_html(summary(ExecutionSummary((self._closed[folder],)))), html=True)
            except RobotError:  # an interrupt
                raise
            except BREAKDOWN_ERRORS as error:
                logger.warn(f"no summary of the run: {in_words(error)}")
        self.shared.interruption.pass_on()


def _failed_setup() -> str:
    """Return why the suite's set-up failed, which Robot says in a teardown; "" where it did not."""
    message = str(BuiltIn().get_variable_value("${SUITE MESSAGE}") or "")
    _, failed, reason = message.partition("setup failed:")
    return reason.partition("\n\n")[0].strip() if failed else ""
