"""Keywords that measure how much a router carries, and keep the results."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial, wraps
from itertools import product
from typing import Any, Literal, TypeVar, cast

from pydantic_core import to_jsonable_python
from robot.api import logger
from robot.api.deco import keyword
from robot.errors import ExecutionStatus, RobotError
from robot.libraries.BuiltIn import BuiltIn

from ..core.phrases import difference
from ..core.quantity import TrafficWords
from ..core.rule import Ruling
from ..core.trial import Load, Trial
from ..core.verdict import Verdict
from ..errors import ConfigError, Inconclusive, TestbedError, in_words
from ..evidence import allure
from ..evidence.chart import svg_image
from ..evidence.document import Document, Note, Section, Table, as_text
from ..evidence.records import CharacterisationRecord
from ..methods import rfc2544
from ..methods.deviations import Deviation
from ..methods.margin import margin_of_forwarding
from ..methods.search import FLOW_COUNTS, LOSS_RATIOS, ScalingResult, SearchResult
from ..methods.trials import SendingResult
from ..session.characterising import Characteriser, flow_words
from ..units import duration_text, si
from . import procedures
from .procedures import PROCEDURES, Procedure
from .shared import Component, Judged, Shared, add_to_test_message, narrow, show_document

R = TypeVar("R")


class CharacterisationKeywords(Component):
    """Searches, ramps, RFC 2544's tests, and throughput against flows and frame sizes.

    *traffic* is traffic and direction as in a sentence. Nothing here fails because a router is slow. Problems of the
    testbed fail with ``INCONCLUSIVE:``, after results so far were kept in the run's records.
    """

    @keyword(tags=["characterise"])
    def search_throughput_of(
        self, traffic: str, deadline: timedelta | None = None, relative_width: float = 0.005
    ) -> SearchResult:
        """The highest loads that the router carries without loss (NDR) and with at most half a per cent (PDR).

        *deadline*: time of traffic after which the search (MLRsearch, RFC 9971) ends with the bounds so far.
        *relative_width*: how close the bounds come (0..1). Trials are those of the run's goal. Example:
        | ${found} =    Search Throughput Of    64b 1-flow unidirectional    deadline=2 min
        """
        session = self.shared.session
        words = Characteriser(session).traffic(traffic)
        line_bps = session.plan.link_bps(words.pairs)
        parts = partial(procedures.search_parts, size=words.profile.mean_size, link_bps=line_bps)
        seconds = _seconds(deadline)
        procedure = Procedure("search", parts, procedures.search_plot, deadline=seconds)
        terms = LOSS_RATIOS, relative_width, seconds
        return self._measured(procedure, Characteriser.search, traffic, *terms)

    @keyword(tags=["sentences"])
    def search_for_more(
        self,
        margin: bool,
        margin_deadline: timedelta | None,
        capacity: Literal["never", "on failure", "always"],
        capacity_deadline: timedelta | None,
    ) -> None:
        """Search for how much more, or less, than its sentence the router carries; sends nothing unless asked for.

        *margin*: after a PASS of a throughput by the same rule at higher loads, of ``forwards`` from the verdict's own
        trials. *capacity*: the highest loads of the traffic, after a FAIL (``on failure``) or a PASS as well
        (``always``). Deadlines are of traffic. What goes wrong here changes no verdict, and is named in its message.
        Example:
        | Search For More    on    1 min    never    5 min
        """
        judged, verdict = self.shared.sentence, self.shared.verdict
        requirement, ruling = verdict.requirement, verdict.ruling
        if margin and ruling is Ruling.PASS and requirement.quantity.margin:
            told = _told(lambda: self._margin(judged, verdict, _seconds(margin_deadline)))
            judged.more += [f"margin: {told}"] if told else []
        wanted = {"never": (), "on failure": (Ruling.FAIL,), "always": (Ruling.FAIL, Ruling.PASS)}[capacity]
        if ruling in wanted and requirement.quantity.loss_explains and requirement.quantity.needs <= {"load"}:
            search = partial(self.search_throughput_of, requirement.traffic, capacity_deadline)
            judged.more.append(f"capacity: {_told(search)}")

    def _margin(self, judged: Judged, verdict: Verdict, deadline: float) -> str:
        """Search for the margin; returns what is left open, in words, "" if nothing."""
        recorder, requirement = self.shared.records, verdict.requirement
        number = recorder.number
        if requirement.quantity.margin == "its own trials":
            record = recorder.keep_margin(margin_of_forwarding(verdict), number, requirement.sentence)
        else:
            procedure = Procedure("margin", lambda result: (), deadline=deadline)
            with CharacterisationWork(self.shared, procedure, requirement.traffic) as work:
                margin = work.characteriser.margin(requirement, deadline)
                record = recorder.keep_margin(margin, number, requirement.sentence)
        at_least = "" if record.finished and record.high is not None else "≥ "
        judged.carries = at_least + requirement.text(record.low * requirement.threshold.number, math.floor)
        judged.limit = record.limit
        judged.margin = difference(record.low - 1, math.floor, 2).replace(" ", "")
        logger.info(f"margin: {record}; {record.seconds:g} s of traffic")
        return "" if record.finished else str(record)

    @keyword(tags=["characterise", "scaling"])
    def scale_over(
        self,
        axis: str,
        traffic: str,
        *values: int,
        set_up: str = "",
        relative_width: float = 0.005,
        deadline: timedelta | None = None,
    ) -> ScalingResult:
        """A search for each of *values* of *axis*: ``flows``, ``frame sizes`` (bytes with FCS), or what *set_up* sets.

        *set_up*: a keyword that is called with the value. *traffic* names all else. *relative_width*: how close the
        bounds of each come (0..1). *deadline*: time of traffic of all together. Examples:
        | Scale Over    flows    64b unidirectional    1    8    64
        | Scale Over    frame sizes    unidirectional    64    512    1518
        | Scale Over    receive queues    64b unidirectional    1    2    3    set_up=Set Receive Queues
        """
        kinds: dict[str, tuple[str, Sequence[int], Callable[[int], str]]] = {
            "flows": ("flows", FLOW_COUNTS, lambda number: f"{traffic} {flow_words(number)}"),
            "frame sizes": ("frame size [bytes with FCS]", rfc2544.FRAME_SIZES, lambda size: f"{size}b {traffic}"),
        }
        if axis not in kinds and not set_up:
            raise ConfigError(f"nothing sets '{axis}'; expected {' or '.join(kinds)}, or a keyword as 'set_up'")
        name, usual, words = kinds[axis] if not set_up else (axis, (), lambda value: traffic)
        run = partial(BuiltIn().run_keyword, set_up) if set_up else lambda value: None
        values, seconds = values or tuple(usual), _seconds(deadline)

        def measure(characteriser: Characteriser, traffic: str) -> ScalingResult:
            return characteriser.scale(name, values, words, relative_width, seconds, run)

        parts, plot = procedures.scaling_parts, procedures.scaling_plot
        procedure = Procedure(f"scaling over {axis}", parts, plot, searches=len(values), deadline=seconds)
        return self._measured(procedure, measure, traffic)

    @keyword(tags=["characterise"])
    def measure_matrix(
        self,
        frames: str = "64b imix 1518b",
        flows: str = "1-flow 10k-flows",
        directions: str = "unidirectional bidirectional",
        more: str = "",
        relative_width: float = 0.02,
        deadline: timedelta | None = None,
    ) -> ScalingResult:
        """Without any threshold: NDR and PDR of all *frames* with all *flows* in all *directions*, as one matrix.

        Each is words of traffic with spaces between them; *more*: words that all have, as ``ipv6``. *relative_width*:
        how close the bounds of each come (0..1). *deadline*: time of traffic, which all searches share alike. Example:
        | Measure Matrix    64b imix    1-flow 1000-flows    unidirectional    deadline=5 min
        """
        session, lists = self.shared.session, (frames.split(), flows.split(), directions.split())
        values = [" ".join((size, flow, *more.split(), way)) for size, flow, way in product(*lists)]
        if not values or len(set(values)) < len(values):
            raise ConfigError(f"expected frames, flows and directions, each once, not {lists}")
        known = [Characteriser(session).traffic(words) for words in values]
        links = [session.plan.link_bps(each.pairs) for each in known]
        rates = [(each.profile.line_rate_pps(link), link) for each, link in zip(known, links, strict=True)]
        lines, seconds = dict(zip(values, rates, strict=True)), _seconds(deadline)

        def measure(characteriser: Characteriser, traffic: str) -> ScalingResult:
            matrix = characteriser.scale("traffic", values, str, relative_width, seconds)
            self.shared.progress.end()
            logger.console("\n" + as_text(Document("", [Section("", parts(matrix))], session.simulated)))
            return matrix

        parts, plot = partial(procedures.matrix_parts, lines=lines), partial(procedures.matrix_plot, lines=lines)
        procedure = Procedure("matrix", parts, plot, searches=len(values), deadline=seconds)
        return self._measured(procedure, measure, " ".join(filter(None, (frames, flows, directions, more))))

    @keyword(tags=["traffic"])
    def send_traffic(
        self, traffic: str, load: str, duration: timedelta = timedelta(seconds=1), during: str = "", *arguments: object
    ) -> SendingResult:
        """Send *traffic* at *load* into each port for *duration*, and return the generator's counts. Nothing is judged.

        *during*: a keyword that is called with *arguments* while frames flow; where it fails, this does, once the
        trial is kept. The result has ``offered``, ``forwarded``, ``lost``, ``directions`` (the same of each, with
        ``tx_port`` and ``rx_port``), ``problems``, and ``counters``, by how much the ports' own rose. Examples:
        | ${sent} =    Send Traffic    64b 1-flow unidirectional    1 Mpps    10 s
        | Should Be Equal    ${sent.lost}    ${0}
        | Log    ${sent.counters}[0.opackets] frames left port 0
        | Send Traffic    imix bidirectional    95% line rate each way    5 s    Run On Router    vppctl show runtime
        """
        ended: list[ExecutionStatus] = []

        def run(wait: Callable[[float], None]) -> None:
            self.shared.is_sending = True
            try:
                BuiltIn().run_keyword(during, *arguments)
            except ExecutionStatus as error:
                if error.exit:  # an interrupt
                    raise
                ended.append(error)
            finally:
                self.shared.is_sending = False

        def measure(characteriser: Characteriser, traffic: str) -> SendingResult:
            return characteriser.send(traffic, load, seconds, run if during else None)

        def parts(result: SendingResult) -> Sequence[Note | Table]:
            meanwhile = f", and `{'    '.join(map(str, (during, *arguments)))}` meanwhile" if during else ""
            failures = (Note(f"`{during}` failed: {error.message}", strong=True) for error in ended)
            return [Note(f"{load} for {seconds:g} s{meanwhile}"), *failures, *procedures.sending_parts(result)]

        seconds = duration.total_seconds()
        sent = self._measured(Procedure("traffic", parts), measure, traffic)
        for error in ended:
            raise error
        return sent

    def _measured(self, procedure: Procedure, measure: Callable[..., R], traffic: str, *terms: Any, **named: Any) -> R:
        """Measure *traffic* on these terms, keep and show the result: the same for each procedure."""
        with CharacterisationWork(self.shared, procedure, traffic) as work:
            if procedure.needs is not None:
                work.session.plan.check_method(procedure.needs)
            result = measure(work.characteriser, traffic, *terms, **named)
            work.keep(result)
        return result


def _keyword_of(procedure: Procedure) -> Callable[..., Any]:
    """Return *procedure* as a keyword, with the arguments and the documentation of its method."""

    @wraps(procedure.measure)
    def measured(self: CharacterisationKeywords, traffic: str, *terms: Any, **named: Any) -> Any:
        return self._measured(procedure, procedure.measure, traffic, *terms, **named)

    tags = ["characterise", *(["rfc2544"] if procedure.needs else [])]
    return cast(Callable[..., Any], keyword(procedure.keyword, tags=tags)(measured))


for _procedure in PROCEDURES:
    setattr(CharacterisationKeywords, _procedure.keyword, _keyword_of(_procedure))


def _seconds(time: timedelta | None) -> float:
    return math.inf if time is None else time.total_seconds()


def _told(search: Callable[[], object]) -> str:
    """Return the result of *search* in words, or why it has none, which leaves the verdict as it is."""
    try:
        return str(search())
    except RobotError:  # an interrupt
        raise
    except Exception as error:  # whatever it is, the verdict stands
        return in_words(error.__cause__ or error)


class CharacterisationWork:
    """One characterisation: its records from begin to end, and what log, report and console show of it."""

    def __init__(self, shared: Shared, procedure: Procedure, traffic: str) -> None:
        session, method = shared.session, procedure.name
        self.session, self.recorder, self.procedure, self.words = session, shared.records, procedure, traffic
        self.characteriser = Characteriser(session, self._begin, self._on_trial)
        self._begun, self._sent = 0, 0.0
        self.title = f"{method[0].upper()}{method[1:]}: {traffic}"
        self._test = str(BuiltIn().get_variable_value("${TEST NAME}"))
        self._first, self._started, self._failure = 0, time.time(), ""
        self._progress, self._link_bps = shared.progress, session.plan.link_bps(1)

    def __enter__(self) -> CharacterisationWork:
        # a reading to compare with at the end; problems before it do not count
        self.characteriser.router_problem()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        self._progress.end()
        if kind is None and self._failure:
            raise Inconclusive(f"INCONCLUSIVE: {self.title}: {self._failure}")
        if isinstance(error, TestbedError):
            raise Inconclusive(f"INCONCLUSIVE: {self.title}: {error}") from error

    def keep(self, result: Any) -> None:
        """Keep the figures of *result*, one or several, and show them with table and picture."""
        problem, simulated, procedure = self.characteriser.router_problem(), self.session.simulated, self.procedure
        parts = result if isinstance(result, tuple) else (result,)
        early = [*dict.fromkeys(filter(None, [*(words for part in parts for words in part.endings), problem]))]
        inconclusive = [words for words in early if words.startswith("inconclusive: ") or words == problem]
        self._failure = "; ".join(words.removeprefix("inconclusive: ") for words in inconclusive)
        told = "\n".join(map(str, parts)) or "nothing was measured"
        deviations = dict.fromkeys(deviation for part in parts for deviation in part.deviations)
        shown = [*procedure.parts(result), *(Note(f"Deviation: {deviation}.") for deviation in deviations)]
        picture = procedure.picture(result, self.title, simulated) if procedure.picture else ""
        self.recorder.folder.add(
            CharacterisationRecord(
                run=self.recorder.folder.run_id,
                simulated=simulated,
                number=self._first,
                last=self.recorder.number,
                test=self._test,
                method=procedure.name,
                sentence=self.words,
                shown=tuple(shown),
                picture=picture,
                link_bps=self._link_bps,
                started=self._started,
                ended=time.time(),
                result=json_data(result),
                loadtest=procedure.loadtest and procedure.loadtest(result, self._traffic, simulated),
            )
        )
        if picture:
            allure.attach(self.title, picture, "SVG")
            logger.info(svg_image(self.title, picture), html=True)
        show_document(Document(self.title, [Section("", shown)], simulated), f"{self.title} (table)")
        if early:
            others = f" (and {len(early) - 1} more, below its table)" if len(early) > 1 else ""
            logger.warn(f"{self.title}: {early[0]}{others}")
        message = f"{self.title}: {'SIMULATED: ' if simulated else ''}{told}"
        if deviations:
            sources = ", ".join(dict.fromkeys(deviation.source for deviation in deviations))
            message += f"\nDeviations from {sources} are declared in the table."
        add_to_test_message(narrow(message))

    def _begin(self, traffic: TrafficWords) -> None:
        self.recorder.begin(self._test)
        self._first, self._traffic = self._first or self.recorder.number, traffic
        self._link_bps = self.session.plan.link_bps(traffic.pairs)
        self._begun += 1
        words, searches = f": {traffic.sentence}", self.procedure.searches
        logger.info(f"{self.procedure.name}{words}")
        self._progress.work(f"{self.procedure.name}{f' {self._begun} of {searches}' * (searches > 1)}{words}")

    def _on_trial(self, traffic: TrafficWords, trial: Trial) -> None:
        self.recorder.keep_trial(traffic, trial, self.session)
        pps, lost = trial.outcome.load.pps, f"lost {trial.lost} of {trial.offered}"
        self._sent += trial.outcome.duration if trial.number else 0.0
        self._progress.step(f"{self._left()}trial {trial.number}, {lost} at {si(pps, 'pps')}")
        words = f"trial {trial.number}: {trial.outcome.duration:g} s at {pps:,.0f} frames/s each port, {lost}"
        logger.info("; ".join([words, *map(str, trial.problems)]))

    def _left(self) -> str:
        """Return how long it takes at most, by its deadline; "": it has none."""
        if math.isinf(self.procedure.deadline):
            return ""
        left = max(0.0, self.procedure.deadline - self._sent) / self.session.clock_speed
        return f"at most {duration_text(left)} left, "


def json_data(result: Any) -> Any:
    """Return *result*, of a characterisation, as JSON data.

    Loads are frames/s into each port, trials their numbers in ``trials.jsonl``, figures that are not finite ``null``.
    Raises ValueError for what has no form in JSON.
    """
    return json.loads(json.dumps(result, default=_plain), parse_constant=lambda name: None)


def _plain(value: Any) -> Any:
    match value:
        case Load():
            return value.pps
        case Trial():
            return value.number
        case Deviation():
            return str(value)
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return to_jsonable_python(value)
