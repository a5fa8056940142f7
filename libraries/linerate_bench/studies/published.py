"""Published figures of real routers, row by row, and the model's. Only the study of fidelity reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from linerate.platforms import named_file
from linerate.project import Project
from linerate.traffic.catalogue import Catalogue
from linerate.traffic.profiles import Profile
from linerate.units import l1_bits

from ..model.forwarding import Forwarding
from ..model.schema import RouterModel, load_platform, router_model
from ..model.telemetry import ModelTelemetry
from .traffic import at_saturation, forwarding_at, throughput

DATA = Path(__file__).with_name("data")

POINTS, RATIO = 3.0, 0.05
"""A rate may be off by so many percentage points of line rate, or by this share of its value."""

TELEMETRY_RATIO = 0.1
"""A router's telemetry may be off by this share of its value."""

# the smallest frame with an IPv6 and a UDP header has 66 bytes
SMALLEST = {
    "ipv4": ["64b", "2000-flows"],
    "ipv6": ["66b", "2000-flows", "ipv6"],
    "vlan": ["64b", "2000-flows", "vlan"],
}
"""Traffic words of the FreeBSD rows."""

ModelOf = Callable[..., RouterModel]


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One published figure and the model's, in the unit of their table; allowed error: points or share of the value."""

    name: str
    published: float
    modelled: float
    points: float = POINTS
    ratio: float = RATIO

    @property
    def error(self) -> float:
        """Modelled less published."""
        return self.modelled - self.published

    @property
    def allowed(self) -> float:
        """How large the error may be."""
        return max(self.points, self.ratio * abs(self.published))

    @property
    def inside(self) -> bool:
        """Whether the error is small enough."""
        return abs(self.error) <= self.allowed


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of one source. ``strict``: it has a rule of its own besides the one over all rows."""

    title: str
    unit: str
    rows: tuple[PublishedRow, ...]
    strict: bool = False


def tables(project: Project) -> tuple[Table, ...]:
    """All of them. Raises ConfigError for files that are not as they should be."""
    catalogue = Catalogue.read(project.profiles)

    def model_of(platform: str, software: str, rx_queues: int | None = None) -> RouterModel:
        path = named_file(project.platforms, platform, "platform")
        return router_model(load_platform(path), software, rx_queues, path)

    line = "Per cent of one direction's line rate; both directions added where bidirectional."
    netgate, gowin, freebsd = (figures(name) for name in ("netgate6100", "gowin_n305", "freebsd_servers"))
    return (
        Table("Netgate 6100", line, tuple(_netgate(netgate, model_of, catalogue)), strict=True),
        Table(
            "Netgate 6100, VPP's telemetry",
            "Cycles per packet, and packets per call of the graph; one flow, one worker.",
            tuple(_efficiency(netgate, model_of, catalogue)),
        ),
        Table(
            "Netgate 6100, VPP on all its workers",
            "Mpps: as many times what one worker forwards; µJ per packet: at the box's watts.",
            tuple(_whole_box(netgate, model_of, catalogue)),
        ),
        Table("Gowin N305", line, tuple(_gowin(gowin, model_of, catalogue))),
        Table(
            "Gowin N305, one receive queue, more offered than the card sends",
            "Per cent of line rate; packets per call of a node.",
            tuple(_one_queue(gowin, model_of, catalogue)),
        ),
        Table(
            "FreeBSD 11.1 on five machines",
            "Frames/s in per cent of what the line carries of 64-byte frames.",
            tuple(_freebsd(freebsd, model_of, catalogue)),
        ),
        Table(
            "FreeBSD 11.1, what one change does",
            "Per cent of the forwarding rate without it.",
            tuple(_changes(freebsd, model_of, catalogue)),
        ),
    )


def figures(name: str) -> Any:
    """The published figures in ``data/NAME.yaml``."""
    return yaml.safe_load((DATA / f"{name}.yaml").read_text(encoding="utf-8"))


def _netgate(figures: Any, model_of: ModelOf, catalogue: Catalogue) -> Iterator[PublishedRow]:
    models = {}
    for column in figures["columns"]:
        software, _, queues = column.partition("_")
        models[column] = model_of("netgate6100", software, int(queues[:-1]) if queues else None)
    for direction, kinds in figures["ramp"].items():
        for traffic, values in kinds.items():
            profile = catalogue.profile(traffic.split())
            for column, published in zip(figures["columns"], values, strict=True):
                modelled = throughput(models[column], profile, direction == "bidirectional")
                yield PublishedRow(f"{traffic} {direction}, {column}", float(published), modelled)
    one = catalogue.profile(["64b", "1-flow"])
    for software, figure in figures["saturation"].items():
        model = model_of("netgate6100", software)
        modelled = 100 * at_saturation(model, one)[0] / one.line_rate_pps(model.link_bps)
        yield PublishedRow(f"64b 1-flow saturated, {software}", float(figure["percent"]), modelled)


def _whole_box(figures: Any, model_of: ModelOf, catalogue: Catalogue) -> Iterator[PublishedRow]:
    whole = figures["whole_box"]
    one = at_saturation(model_of("netgate6100", "vpp"), catalogue.profile(["64b", "1-flow"]))[0]
    mpps = whole["workers"] * one / 1e6
    yield PublishedRow("forwarded", whole["mpps"], mpps, 0.0)
    yield PublishedRow("energy", whole["microjoule"], whole["watts"] / mpps, 0.0)


def _efficiency(figures: Any, model_of: ModelOf, catalogue: Catalogue) -> Iterator[PublishedRow]:
    one, model = catalogue.profile(["64b", "1-flow"]), model_of("netgate6100", "vpp", 1)
    for row in figures["efficiency"]:
        offered = float(row["offered_pps"])
        nodes = _nodes(model, forwarding_at(model, one, offered))
        frames = nodes["dpdk-input"][0]
        cycles = {name: clocks / frames for name, (_, _, clocks) in nodes.items()}
        vectors = nodes["ip4-lookup"][0] / nodes["ip4-lookup"][1]
        for what, value in (
            ("cycles", sum(cycles.values())),
            ("without_input", sum(cycles.values()) - cycles["dpdk-input"]),
            ("vectors_per_call", vectors),
        ):
            name = f"{what.replace('_', ' ')} at {offered / 1e3:g} kpps"
            yield PublishedRow(name, float(row[what]), value, 0.0, TELEMETRY_RATIO)


def _nodes(model: RouterModel, forwarding: Forwarding) -> dict[str, tuple[int, int, float]]:
    """Per node of the first worker with frames: vectors, calls, cycles of 100 s."""
    telemetry = ModelTelemetry(model)
    telemetry.add(forwarding, 100.0)
    threads = telemetry.threads(("first", "second"), "vpp")
    busy = next(thread for thread in threads if thread.packets)
    return {node.name: (node.vectors, node.calls, node.clocks) for node in busy.nodes}


def _gowin(figures: Any, model_of: ModelOf, catalogue: Catalogue) -> Iterator[PublishedRow]:
    for software, directions in figures["tables"].items():
        model = model_of(figures["platform"], software)
        for direction, rows in directions.items():
            both = direction == "bidirectional"
            for traffic, (_, _, percent) in rows.items():
                size, _, kind = traffic.partition("-")
                words = {"": [size], "single": [size, "1-flow"], "mpls": [size, "mpls"]}[kind]
                modelled = throughput(model, catalogue.profile(words), both)
                # published of both directions' line rate together
                yield PublishedRow(f"{traffic} {direction}, {software}", percent * (2 if both else 1), modelled)


def _one_queue(figures: Any, model_of: ModelOf, catalogue: Catalogue) -> Iterator[PublishedRow]:
    figure, one = figures["one_queue"], catalogue.profile(["64b", "1-flow"])
    model = model_of(figures["platform"], figure["software"])
    line = one.line_rate_pps(model.link_bps)
    forwarded, found = at_saturation(model, one)
    nodes = _nodes(model, found)
    yield PublishedRow("taken in", 1e8 * figure["in_mpps"] / line, 100 * sum(row.pps for row in found.workers) / line)
    yield PublishedRow("sent", 1e8 * figure["out_mpps"] / line, 100 * forwarded / line)
    for node in ("output", "tx"):
        vectors, calls, _ = nodes[f"second-{node}"]
        published = float(figure[f"{node}_vectors_per_call"])
        yield PublishedRow(f"packets per call of {node}", published, vectors / calls, 0.0, TELEMETRY_RATIO)


def _freebsd(figures: Any, model_of: ModelOf, catalogue: Catalogue) -> Iterator[PublishedRow]:
    smallest = {version: catalogue.profile(words) for version, words in SMALLEST.items()}
    for machine, drivers in figures["machines"].items():
        for driver, values in drivers.items():
            for column, mpps in zip(figures["columns"], values, strict=True):
                if mpps is not None:
                    software = f"{driver}_{'generic' if column == 'generic' else 'tuned'}"
                    profile = smallest["ipv6" if column == "inet6" else "ipv4"]
                    name = f"{machine.removeprefix('freebsd_')} {driver}, {column}"
                    yield _smallest(name, mpps, model_of(machine, software), profile)
    eight = dict(figures["eight_queues"])
    machine = eight.pop("machine")
    for driver, mpps in eight.items():
        name = f"{machine.removeprefix('freebsd_')} {driver}, eight queues"
        yield _smallest(name, mpps, model_of(machine, f"{driver}_tuned", 8), smallest["ipv4"])


def _smallest(name: str, mpps: float, model: RouterModel, profile: Profile) -> PublishedRow:
    unit = model.link_bps / l1_bits(64) / 100
    return PublishedRow(name, 1e6 * mpps / unit, at_saturation(model, profile)[0] / unit)


def _changes(figures: Any, model_of: ModelOf, catalogue: Catalogue) -> Iterator[PublishedRow]:
    plain, tagged = (catalogue.profile(SMALLEST[name]) for name in ("ipv4", "vlan"))
    for row in figures["changes"]:
        machine, driver, change = row["machine"], row["driver"], row["change"]
        model = model_of(machine, f"{driver}_tuned")
        changed = model_of(machine, f"{driver}_{change}") if change == "bridge" else model
        before, after = at_saturation(model, plain)[0], at_saturation(changed, tagged if change == "vlan" else plain)[0]
        yield PublishedRow(
            f"{change}, {machine.removeprefix('freebsd_')} {driver}", row["percent"], 100 * (after / before - 1)
        )
