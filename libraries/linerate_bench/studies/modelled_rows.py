"""The published rows as routers and traffic: what was measured on which modelled box. Without the figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from linerate.platforms import Software, named_file
from linerate.project import Project
from linerate.traffic.catalogue import Catalogue
from linerate.traffic.profiles import Profile

from ..model.schema import RouterModel, load_platform, router_model
from .published import SMALLEST, figures


@dataclass(frozen=True, slots=True)
class ModelledRow:
    """One row: *software* (its name in the platform's file: ``software_name``) with *profile*."""

    name: str
    software_name: str
    software: Software
    model: RouterModel
    profile: Profile
    bidirectional: bool = False


@dataclass(frozen=True)
class _Rows:
    project: Project
    catalogue: Catalogue

    def row(
        self, name: str, box: str, software: str, words: Sequence[str], both: bool = False, queues: int | None = None
    ) -> ModelledRow:
        chosen, model = _box(named_file(self.project.platforms, box, "platform"), software, queues)
        return ModelledRow(name, software, chosen, model, self.catalogue.profile(list(words)), both)


@lru_cache
def _box(path: Path, software: str, queues: int | None) -> tuple[Software, RouterModel]:
    platform = load_platform(path)
    return platform.software[software], router_model(platform, software, queues, path)


def modelled_rows(project: Project) -> tuple[ModelledRow, ...]:
    """The rows of all rate tables. Raises ConfigError for files that are not as they should be."""
    rows = _Rows(project, Catalogue.read(project.profiles))
    return (*_netgate(rows), *_gowin(rows), *_freebsd(rows))


def _netgate(rows: _Rows) -> Iterator[ModelledRow]:
    data: Mapping[str, Any] = figures("netgate6100")
    for direction, kinds in data["ramp"].items():
        for traffic in kinds:
            for column in data["columns"]:
                software, _, queues = column.partition("_")
                name = f"netgate6100 {traffic} {direction}, {column}"
                both, count = direction == "bidirectional", int(queues[:-1]) if queues else None
                yield rows.row(name, "netgate6100", software, traffic.split(), both, count)


def _gowin(rows: _Rows) -> Iterator[ModelledRow]:
    data: Mapping[str, Any] = figures("gowin_n305")
    box, kinds = data["platform"], {"": (), "single": ("1-flow",), "mpls": ("mpls",)}
    for software, directions in data["tables"].items():
        for direction, table in directions.items():
            for traffic in table:
                size, _, kind = traffic.partition("-")
                name, words = f"{box} {traffic} {direction}, {software}", (size, *kinds[kind])
                yield rows.row(name, box, software, words, direction == "bidirectional")
    one = data["one_queue"]["software"]
    yield rows.row(f"{box} one queue, {one}", box, one, ("64b", "1-flow"))


def _freebsd(rows: _Rows) -> Iterator[ModelledRow]:
    data: Mapping[str, Any] = figures("freebsd_servers")
    for machine, drivers in data["machines"].items():
        for driver, values in drivers.items():
            for column, value in zip(data["columns"], values, strict=True):
                if value is not None:
                    software = f"{driver}_{'generic' if column == 'generic' else 'tuned'}"
                    words = SMALLEST["ipv6" if column == "inet6" else "ipv4"]
                    yield rows.row(f"{machine} {driver}, {column}", machine, software, words)
    eight = data["eight_queues"]
    for driver in (key for key in eight if key != "machine"):
        machine = eight["machine"]
        name = f"{machine} {driver}, eight queues"
        yield rows.row(name, machine, f"{driver}_tuned", SMALLEST["ipv4"], queues=8)
    for change in data["changes"]:
        machine, driver, kind = change["machine"], change["driver"], change["change"]
        software = f"{driver}_{'bridge' if kind == 'bridge' else 'tuned'}"
        yield rows.row(f"{machine} {driver}, {kind}", machine, software, SMALLEST["vlan" if kind == "vlan" else "ipv4"])
