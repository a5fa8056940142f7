"""Published figures of real routers, row by row, and the model's: of every study that has some."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from lineproof.core.quantity import TrafficWords
from lineproof.core.sentence import parse, parse_traffic
from lineproof.core.traffic.catalogue import Catalogue
from lineproof.core.traffic.profiles import Profile
from lineproof.errors import ConfigError
from lineproof.platforms import Platform, named_file
from lineproof.project import Project, listed
from lineproof.studies.study import Study, load_study
from lineproof.units import FCS, PREFIX, l1_bits
from lineproof_bench.model.backend import ModelTelemetry
from lineproof_bench.model.forwarding import Forwarding, StreamLoad, forward, parts_of
from lineproof_bench.model.schema import RouterModel, Vectors, load_platform, router_model
from support.model_bench import traffic


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One published figure and the model's, in the unit of their study, and how large the error may be there.

    ``rate``: per cent of line rate. ``explained``: why it is outside, as the study's file says; "".
    """

    name: str
    published: float
    modelled: float
    allowed: float
    rate: bool = True
    explained: str = ""

    @property
    def error(self) -> float:
        return self.modelled - self.published

    @property
    def error_percent(self) -> float:
        """The error in per cent of the published figure; infinite where that is 0 and ours is not."""
        if not self.published:
            return math.inf if self.modelled else 0.0
        return 100 * abs(self.modelled / self.published - 1)

    @property
    def inside(self) -> bool:
        return abs(self.error) <= self.allowed


@dataclass(frozen=True)
class ModelledVariant:
    """A row of a study on the modelled box of a variant, with its traffic."""

    study: Study
    row: str
    variant: str
    platform: Platform
    software: str
    model: RouterModel
    traffic: TrafficWords
    catalogue: Catalogue

    @property
    def name(self) -> str:
        return self.variant if len(self.study.measures) == 1 else f"{self.row}, {self.variant}"


def published_studies(project: Project) -> tuple[Study, ...]:
    """Return the studies that have published figures. Raises ConfigError for files that are wrong."""
    studies = (load_study(path) for path in listed(project.studies, "*.yaml"))
    return tuple(study for study in studies if any(study.published.rows.values()))


def modelled_variants(project: Project, studies: tuple[Study, ...]) -> Iterator[ModelledVariant]:
    """Yield every row of *studies* that has a published figure. Raises ConfigError."""
    catalogue = Catalogue.read(project.profiles)
    boxes: dict[str, tuple[Platform, Path]] = {}
    for study in studies:
        for row, figures in study.published.rows.items():
            for variant in figures:
                own, name = study.variants[variant], study.platform_of(variant)
                if name not in boxes:
                    path = named_file(project.platforms, name, "platform")
                    boxes[name] = load_platform(path), path
                box, path = boxes[name]
                software = own.software or next(iter(box.software))
                try:
                    model = router_model(box, software, own.rx_queues, path, own.configured)
                except ConfigError as error:
                    raise ConfigError(f"variant '{variant}' of study '{study.study}': {error}") from None
                sent = parse_traffic(study.traffic_of(row, variant), catalogue)
                yield ModelledVariant(study, row, variant, box, software, model, sent, catalogue)


def published_rows(project: Project) -> Mapping[str, list[PublishedRow]]:
    """Return every published row, by study. Raises ConfigError for files that are wrong."""
    rows = defaultdict[str, list[PublishedRow]](list)
    for variant in modelled_variants(project, published_studies(project)):
        rows[variant.study.study].append(_row(variant))
    return rows


def _row(variant: ModelledVariant) -> PublishedRow:
    study, row = variant.study, variant.row
    figures, tolerance = study.published_figures(row, variant.variant), study.tolerance_of(row)
    if not figures:
        raise ConfigError(f"study '{study.study}' has no published figure of '{row}' on '{variant.variant}'")
    published = median(figures)
    measure = study.measures[row]
    if rate := measure.is_rate:
        published *= _percent_per_unit(variant)
    allowed = tolerance.allowed(published, 100.0 if rate else None, measure.is_difference)
    explained = study.explanation(row, variant.variant)
    return PublishedRow(variant.name, published, modelled(variant), allowed, rate, explained)


def _percent_per_unit(variant: ModelledVariant) -> float:
    """Per cent of one direction's line rate that one of a rate's unit is. Frames/s: of the smallest frames."""
    unit = variant.study.unit_of(variant.row)
    scale = {"Gbit/s": 1e9} | {f"{prefix}pps": PREFIX[prefix] * l1_bits(64) for prefix in ("", "k", "M")}
    return 1.0 if unit == "percent of line" else 100 * scale[unit] / variant.model.speeds[0]


def modelled(variant: ModelledVariant) -> float:
    """Return what the model gives: a rate in per cent of the published one's line rate, else in the row's unit."""
    study, row, model, sent = variant.study, variant.row, variant.model, variant.traffic
    profile, kind = sent.profile, study.measures[row].kind
    line = profile.line_rate_pps(model.speeds[0])
    # per cent that one frame/s is: of its own line rate, or as published frames/s are, of the smallest frames'
    per_pps = 100 / line if "pps" not in study.unit_of(row) else 100 * l1_bits(64) / model.speeds[0]
    if kind == "ramp":
        return throughput(model, profile, sent.bidirectional) * line / 100 * per_pps
    forwarding = forwarding_at(model, profile, _offered(variant))
    forwarded = sum(sum(worker.sent.values()) for worker in forwarding.workers)
    handled = sum(worker.pps for worker in forwarding.workers)
    if kind == "energy":
        return 1e6 * (variant.platform.watts or 0.0) / forwarded
    rates = {"forwards": forwarded, "takes_in": handled, "drops_sending": handled - forwarded}
    return rates[kind] * per_pps if kind in rates else _runtime(model, forwarding, model.software.vectors)[kind]


def _offered(variant: ModelledVariant) -> float:
    """Return the frames/s that a row offers in one direction: its load, or all that the generator sends."""
    model, profile = variant.model, variant.traffic.profile
    most = model.ceiling * profile.line_rate_pps(model.speeds[0])
    if (at := variant.study.measures[variant.row].at) is None:
        return most
    requirement = parse(f"{variant.traffic.sentence} forwards ≥ 1 pps at {at}", variant.catalogue)
    load = requirement.named_load(model.speeds[0])
    return min(most, load.pps) if load else most


def _runtime(model: RouterModel, forwarding: Forwarding, vectors: Vectors | None) -> dict[str, float]:
    """Return VPP's cycles per packet and packets per call of the look-up, of the first worker with frames."""
    telemetry = ModelTelemetry(model)
    telemetry.add(forwarding, 100.0)
    busy = next(thread for thread in telemetry.threads(("first", "second"), "vpp") if thread.packets)
    nodes = {node.name: node for node in busy.nodes}
    taken = nodes[vectors.input if vectors else ""]
    cycles, look_up = sum(node.clocks for node in busy.nodes), nodes["ip4-lookup"]
    return {
        "cycles": cycles / taken.vectors,
        "cycles_without_input": (cycles - taken.clocks) / taken.vectors,
        "vectors": look_up.vectors / look_up.calls,
    }


LOSSLESS = 1e-9
"""A share of frames lost below this is rounding."""


def loads_at(model: RouterModel, profile: Profile, bidirectional: bool) -> Callable[[float], list[StreamLoad]]:
    """Return a function from a load (share of line rate per direction) to the offered load.

    Every frame leaves by the other port.
    """
    line = profile.line_rate_pps(model.speeds[0])
    streams = [
        (port, stream, parts_of(model, stream, (lambda _: 1, lambda _: 0)[port]))
        for port in range(2 if bidirectional else 1)
        for stream in traffic(profile, line, swapped=port == 1)
    ]
    return lambda load: [
        StreamLoad(port, load * stream.pps, len(stream.frame) + FCS, parts) for port, stream, parts in streams
    ]


def throughput(model: RouterModel, profile: Profile, bidirectional: bool) -> float:
    """Return the highest load without loss, per cent of one direction's line rate, both directions added."""
    return 100 * lossless_share(model, loads_at(model, profile, bidirectional)) * (2 if bidirectional else 1)


def lossless_share(model: RouterModel, at: Callable[[float], list[StreamLoad]]) -> float:
    """Return the highest load without loss, as a share of line rate per direction; *at*: of :func:`loads_at`."""

    def loss(load: float) -> float:
        """Return the largest share of a stream's frames that the card missed or that found no room at sending."""
        fates = forward(model, at(load)).fates
        return max((fate.missed + (1 - fate.missed) * fate.tx_dropped for fate in fates), default=0.0)

    low, high = 0.0, model.ceiling
    if loss(high) <= LOSSLESS:
        low = high
    while high - low > 1e-5:
        middle = (low + high) / 2
        if loss(middle) <= LOSSLESS:
            low = middle
        else:
            high = middle
    return low


def forwarding_at(model: RouterModel, profile: Profile, pps: float) -> Forwarding:
    """Return how the router forwards *pps* frames/s of *profile* in one direction."""
    return forward(model, loads_at(model, profile, False)(pps / profile.line_rate_pps(model.speeds[0])))
