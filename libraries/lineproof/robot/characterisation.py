"""Keywords that measure how much a router carries, and keep the results: one for each procedure, and the margin."""

from __future__ import annotations

import inspect
import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, cast, get_type_hints

from robot.api import logger
from robot.api.deco import keyword
from robot.errors import ExecutionStatus, RobotError
from robot.libraries.BuiltIn import BuiltIn

from ..core.deciding import wall_seconds
from ..core.phrases import difference
from ..core.quantity import TrafficWords
from ..core.rule import Ruling
from ..core.trial import EXAMINED, Trial
from ..core.verdict import NOT_LOOKED_AT, Verdict
from ..documents.chart import svg_image
from ..documents.document import Document, Note, Section, as_text
from ..errors import Inconclusive, SentenceError, TestbedError, in_words
from ..evidence import allure
from ..evidence.records import CharacterisationRecord
from ..procedures.procedure import Procedure, ProcedureRun, json_data, procedures
from ..procedures.search.margin import margin, margin_of_forwarding
from ..procedures.trials import ProcedureResult
from ..units import counted, duration_text, si
from ..visible import shortened
from .shared import Component, Judged, Shared, add_to_test_message, margin_seconds, narrow, say, show_document

WIDTHS = "relative_width", "resolution"
"""Arguments that are a ratio of a load."""

MOST = 10_000_000
"""The largest number, and the longest time in s, that a procedure's argument may be."""


class CharacterisationKeywords(Component):
    """Every procedure as a keyword, and the search for more after a sentence.

    *traffic* is traffic and direction as in a sentence. Nothing here fails because a router is slow. Problems of the
    testbed fail with ``INCONCLUSIVE:``, after results so far were kept in the run's records.
    """

    @keyword(tags=["sentences"])
    def search_for_more(self, margin: str) -> None:
        """Search for how much more than its sentence the router carries; sends nothing unless asked for.

        *margin*: after a PASS of a throughput by the same rule at higher loads, of ``forwards`` from the verdict's own
        trials: ``off``, ``on`` (15 s of traffic at most), or the time of traffic. What goes wrong here changes no
        verdict, and is named in its message. Example:
        | Search For More    1 min
        """
        judged, verdict = self.shared.sentence, self.shared.verdict
        if (limit := margin_seconds(margin)) and verdict.ruling is Ruling.PASS and verdict.requirement.quantity.margin:
            try:
                told = self._margin(judged, verdict, limit)
            except RobotError:  # an interrupt
                raise
            except Exception as error:  # whatever it is, the verdict stands
                told = in_words(error.__cause__ or error)
            judged.more += [f"margin: {told}"] if told else []

    def _margin(self, judged: Judged, verdict: Verdict, deadline: float) -> str:
        """Search for the margin; returns what is left open, in words, "" if nothing."""
        recorder, requirement = self.shared.records, verdict.requirement
        number = recorder.number
        if requirement.quantity.margin == "its own trials":
            search = margin_of_forwarding(verdict)
        else:
            with CharacterisationWork(self.shared, "margin", requirement.traffic, deadline) as work:
                search = margin(work, requirement)
        record = recorder.keep_margin(number, requirement.sentence, **search.figures)
        at_least = "" if record.finished and record.high is not None else "≥ "
        judged.carries = at_least + requirement.text(record.low * requirement.threshold.number, math.floor)
        judged.limit, judged.searched = record.limit, search.trials
        judged.margin = difference(record.low - 1, math.floor)
        logger.info(f"margin: {record}; {record.seconds:g} s of traffic")
        return "" if record.finished else str(record)


def check_arguments(procedure: Procedure, arguments: Mapping[str, Any]) -> None:
    """Raise SentenceError for a number or a time among the *arguments* of *procedure* that is out of bounds."""
    for name, value in arguments.items():
        number, unit = (value.total_seconds(), " s") if isinstance(value, timedelta) else (value, "")
        is_number = isinstance(number, int | float)
        if is_number and not (0 < number <= MOST or (number == 0 and name in procedure.may_be_nothing)):
            expected = f"expected more than 0 and at most {MOST:,}{unit}"
            raise SentenceError(f"'{name}': {expected}, not {shortened(value)}")
        if name in WIDTHS and is_number and not 1e-6 <= value < 1:
            raise SentenceError(f"'{name}': expected a ratio from 0.000001 to below 1, not {value:g}")


def _keyword_of(procedure: Procedure) -> Callable[..., Any]:
    """Return *procedure* as a keyword, with the arguments and the documentation of its method, and a deadline."""

    def run(self: CharacterisationKeywords, *terms: Any, deadline: timedelta | None = None, **options: Any) -> Any:
        check_arguments(procedure, own.bind(self, *terms, deadline=deadline, **options).arguments)
        traffic = str(next(iter(terms), options.get("traffic", "")))
        limit = math.inf if deadline is None else deadline.total_seconds()
        with CharacterisationWork(self.shared, procedure.name, traffic, limit) as work:
            if procedure.needs is not None:
                work.session.plan.check_method(procedure.needs)
            result = procedure.measure(work, *terms, **options)
            work.keep_result(procedure, result)
        return result

    own, last = inspect.signature(procedure.measure), inspect.signature(run).parameters["deadline"]
    own = own.replace(parameters=[*own.parameters.values(), last])
    run.__doc__ = procedure.measure.__doc__
    run.__signature__ = own  # type: ignore[attr-defined]
    run.__annotations__ = {**get_type_hints(procedure.measure), "deadline": timedelta | None}
    return cast(Callable[..., Any], keyword(procedure.keyword, tags=procedure.tags)(run))


for _procedure in procedures():
    setattr(CharacterisationKeywords, _procedure.keyword, _keyword_of(_procedure))


def _endings(results: Sequence[ProcedureResult]) -> list[str]:
    """Return why *results* ended early, each reason once, with the values of the results if reasons differ."""
    values = defaultdict[str, list[str]](list)
    for result in results:
        values[result.ended].append(result.value)
    several = len(values) > 1
    return [ended + f" ({', '.join(of)})" * several for ended, of in values.items() if ended]


class CharacterisationWork(ProcedureRun):
    """A procedure in a suite: its records from begin to end, and what log, report and console show of it."""

    def __init__(self, shared: Shared, name: str, traffic: str, deadline: float) -> None:
        super().__init__(shared.session, self._begin, self._on_trial, deadline, name, traffic)
        self.shared, self.recorder, self.progress, self.whole = shared, shared.records, shared.progress, deadline
        self._test = str(BuiltIn().get_variable_value("${TEST NAME}"))
        self._begun = self._first = 0
        self._started, self._failure, self._looked_at = time.time(), "", False
        self._link_bps = self.session.plan.link_bps(1)

    def __enter__(self) -> CharacterisationWork:
        # a reading to compare with at the end; problems before it do not count
        self.router_problem()
        self.session.examine(True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self.progress.end()
        self.session.examine(False)
        failure = str(error) if isinstance(error, TestbedError) else self._failure if kind is None else ""
        if failure:
            raise Inconclusive(f"INCONCLUSIVE: {self.title}: {failure}") from error

    def keep_result(self, procedure: Procedure, result: Any) -> None:
        """Keep the figures of *result*, one or several, and show them, on the console without long tables."""
        problem, simulated = self.router_problem(), self.session.simulated
        results = result if isinstance(result, tuple) else (result,)
        early = [*_endings(results), *([problem] if problem else [])]
        if not results:
            early.append("inconclusive: nothing was measured")
        if not self._first:  # it ended before any traffic was chosen
            self.recorder.begin(self._test)
            self._first = self.recorder.number
        inconclusive = [ending for ending in early if ending.startswith("inconclusive: ") or ending == problem]
        self._failure = "; ".join(ending.removeprefix("inconclusive: ") for ending in inconclusive)
        deviations = dict.fromkeys(deviation for result in results for deviation in result.deviations)
        if not self._looked_at:
            deviations[NOT_LOOKED_AT] = None
        own = procedure.parts(self, results) if results else []
        shown = [*own, *(Note(f"Deviation: {deviation}.") for deviation in deviations)]
        picture = procedure.picture(self, results) if results else ""
        self.recorder.folder.add(
            CharacterisationRecord(
                run=self.recorder.folder.run_id,
                simulated=simulated,
                number=self._first,
                last=self.recorder.number,
                test=self._test,
                method=self.name,
                sentence=self.words,
                shown=tuple(shown),
                picture=picture,
                link_bps=self._link_bps,
                started=self._started,
                ended=time.time(),
                result=json_data(result),
                loadtest=procedure.loadtest(self, results),
            )
        )
        if picture:
            allure.attach(self.title, picture, "SVG")
            logger.info(svg_image(self.title, picture), html=True)
        show_document(Document(self.title, [Section("", shown)], simulated), f"{self.title} (table)")
        told = "; ".join(early) or "its table is on the page"
        message = f"{self.title}: {'SIMULATED: ' if simulated else ''}{told}"
        if deviations:
            sources = ", ".join(dict.fromkeys(deviation.source for deviation in deviations))
            message += f"\nDeviations from {sources} are declared in the table."
        add_to_test_message(narrow(message))
        self.progress.end()
        short = [part for part in own if isinstance(part, Note) or len(part.rows) <= 40]
        logger.console("\n" + as_text(Document(self.title, [Section("", short)], simulated)))

    def call(self, name: str) -> Callable[..., None]:
        """Return the suite's keyword *name*; it raises TestbedError where it fails. Raises SentenceError if none is."""
        try:
            BuiltIn().keyword_should_exist(cast(Any, name))
        except AssertionError as error:
            raise SentenceError(f"'{name}' cannot be called: {error}") from error

        def call(*arguments: object) -> None:
            self.shared.is_measuring = True
            try:
                BuiltIn().run_keyword(name, *arguments)
            except ExecutionStatus as error:
                if error.exit:  # an interrupt
                    raise
                raise TestbedError(f"'{name}' failed: {error}") from error
            finally:
                self.shared.is_measuring = False

        return call

    def announce(self, trials: int, traffic: float) -> None:
        """Print how long the trials take, where that is long."""
        speed, count = self.session.plan.clock_speed, counted(trials, "trial")
        share = min(1.0, self.whole / traffic) if traffic else 1.0
        least, most = (share * wall_seconds(traffic, trials, speed, drains) for drains in (False, True))
        text = f"{self.title}: {count}, about {duration_text(least)}, at most {duration_text(most)}"
        (say if most > 60 else logger.info)(text)

    def _begin(self, traffic: TrafficWords) -> None:
        self.recorder.begin(self._test)
        self._first = self._first or self.recorder.number
        self._link_bps = self.link_bps(traffic)
        self._begun += 1
        logger.info(f"{self.name}: {traffic.sentence}")
        of_several = f" {self._begun} of {self.searches}" if self.searches > 1 else ""
        self.progress.work(f"{self.name}{of_several}: {traffic.sentence}", is_part=self.searches > 1)

    def _on_trial(self, traffic: TrafficWords, trial: Trial) -> None:
        self.recorder.keep_trial(traffic, trial, self.session)
        self._looked_at = self._looked_at or any(name.startswith(EXAMINED) for name in trial.outcome.readings)
        pps, lost, left = trial.outcome.load.pps, f"lost {trial.lost:,} of {trial.offered:,}", ""
        if math.isfinite(self.whole):
            left = f"at most {duration_text(max(0.0, self.whole - self.sent))} of traffic left, "
        self.progress.step(f"{left}trial {trial.number}, {lost} at {si(pps, 'pps')}")
        message = f"trial {trial.number}: {trial.outcome.duration:g} s at {pps:,.0f} frames/s each port, {lost}"
        logger.info("; ".join([message, *map(str, trial.problems)]))
