"""``python -m linerate study fidelity``: published rows of the Netgate 6100 against what the forwarding model says.

No traffic and no clock: the model's pure functions alone. A row is inside when the model is within 3 percentage
points of line rate or 5 % of the published value, whichever is larger.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from ..embedded.backend import FieldVariable, StreamTraffic
from ..embedded.model.flows import Flow
from ..embedded.model.forwarding import Load, forward, parts_of
from ..embedded.model.schema import RouterModel, load_platform, router_model
from ..generators.base import Way
from ..generators.streams import streams
from ..platforms import named_file
from ..profiles import Catalogue, Profile
from ..project import Project

FIGURES = Path(__file__).with_name("data") / "published-figures.yaml"

PLATFORM = "netgate6100"

MOST_OUTSIDE = 2
"""Rows that may be outside."""

POINTS, RATIO = 3.0, 0.05
"""A row may be off by so many percentage points of line rate, or by this share of its value."""

LOSSLESS = 1e-9
"""A share of frames lost below this is rounding."""


@dataclass(frozen=True, slots=True)
class Row:
    """One published figure and the model's, both in per cent of one direction's line rate."""

    name: str
    published: float
    modelled: float

    @property
    def error(self) -> float:
        """Modelled less published, percentage points."""
        return self.modelled - self.published

    @property
    def allowed(self) -> float:
        """How large the error may be, percentage points."""
        return max(POINTS, RATIO * self.published)

    @property
    def inside(self) -> bool:
        """Whether the error is small enough."""
        return abs(self.error) <= self.allowed


def loads_at(model: RouterModel, profile: Profile, bidirectional: bool) -> Callable[[float], list[Load]]:
    """A function from a load (share of line rate each way) to what the router is offered.

    Every frame leaves by the other port.
    """
    line = profile.line_rate_pps(model.link_bps)
    ways = (Way(0, 1), Way(1, 0, swapped=True))[: 2 if bidirectional else 1]
    rows = []
    for port, way in enumerate(ways):

        def other(flow: Flow | None, port: int = port) -> int:
            return 1 - port

        for stream in streams(profile, way):
            variables = tuple(
                FieldVariable(item.offset, item.size, item.minimum, item.maximum, item.minimum, item.step)
                for item in stream.variables
            )
            traffic = StreamTraffic(0, bytes.fromhex(stream.frame), 0.0, variables)
            rows.append((port, stream.share * line, len(traffic.frame) + 4, parts_of(model, traffic, other)))
    return lambda load: [Load(port, load * pps, size, parts) for port, pps, size, parts in rows]


def throughput(model: RouterModel, profile: Profile, bidirectional: bool) -> float:
    """The highest load without loss, per cent of one direction's line rate, both directions added."""
    at = loads_at(model, profile, bidirectional)
    low, high = 0.0, model.ceiling
    if forward(model, at(high)).loss <= LOSSLESS:
        low = high
    while high - low > 1e-5:
        middle = (low + high) / 2
        if forward(model, at(middle)).loss <= LOSSLESS:
            low = middle
        else:
            high = middle
    return 100 * low * (2 if bidirectional else 1)


def saturation(model: RouterModel, profile: Profile) -> float:
    """Forwarding rate at the generator's maximum, one way, per cent of line rate."""
    loads = loads_at(model, profile, bidirectional=False)(model.ceiling)
    fates = forward(model, loads).fates
    forwarded = sum(load.pps * fate.forwarded for load, fate in zip(loads, fates, strict=True))
    return 100 * forwarded / profile.line_rate_pps(model.link_bps)


def rows(project: Project) -> tuple[Row, ...]:
    """All rows. Raises ConfigError for files that are not as they should be."""
    figures = yaml.safe_load(FIGURES.read_text(encoding="utf-8"))
    path = named_file(project.platforms, PLATFORM, "platform")
    platform = load_platform(path)
    catalogue = Catalogue.read(project.profiles)
    models = {}
    for column in figures["columns"]:
        software, _, queues = column.partition("_")
        models[column] = router_model(platform, software, int(queues[:-1]) if queues else None, path)
    found = []
    for direction, kinds in figures["ramp"].items():
        for traffic, values in kinds.items():
            profile = catalogue.profile(traffic.split())
            for column, published in zip(figures["columns"], values, strict=True):
                modelled = throughput(models[column], profile, direction == "bidirectional")
                found.append(Row(f"{traffic} {direction}, {column}", float(published), modelled))
    one = catalogue.profile(["64b", "1-flow"])
    for software, figure in figures["saturation"].items():
        modelled = saturation(router_model(platform, software, None, path), one)
        found.append(Row(f"64b 1-flow saturated, {software}", float(figure["percent"]), modelled))
    return tuple(found)


def table(found: Iterable[Row], markdown: bool = False) -> str:
    """The rows as text, in per cent of one direction's line rate."""
    head = ("row", "published", "modelled", "error", "allowed", "inside")
    cells = [
        (row.name, f"{row.published:g}", f"{row.modelled:.2f}", f"{row.error:+.2f}", f"{row.allowed:.2f}",
         "yes" if row.inside else "NO")
        for row in found
    ]  # fmt: skip
    if markdown:
        lines = ["| " + " | ".join(line) + " |" for line in [head, ("---", *["---:"] * 4, "---"), *cells]]
    else:
        width = max(len(line[0]) for line in cells)
        lines = [f"{line[0]:{width}}" + "".join(f"{cell:>11}" for cell in line[1:]) for line in [head, *cells]]
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    """Print the table; 0 when enough rows are inside, else 1."""
    parser = argparse.ArgumentParser(prog="linerate study fidelity", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--markdown", action="store_true", help="print the table as in docs/fidelity.md")
    parser.add_argument("--root", type=Path, help="the project's folder, the one with variables/ (default: found)")
    options = parser.parse_args(argv)
    found = rows(Project.find(options.root))
    outside = [row for row in found if not row.inside]
    print("Per cent of one direction's line rate; both directions added where bidirectional.\n")
    print(table(found, options.markdown))
    print(f"\n{len(found) - len(outside)} of {len(found)} rows inside; {MOST_OUTSIDE} may be outside.")
    return 0 if len(outside) <= MOST_OUTSIDE else 1
