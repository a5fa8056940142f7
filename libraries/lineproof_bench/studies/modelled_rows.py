"""The published rates as routers and traffic: what was measured on which modelled box. Without the figures.

Not those behind a firewall: nothing that FreeBSD counts tells a core that waits for a firewall's lock from a busy one.
"""

from __future__ import annotations

from dataclasses import dataclass

from lineproof.platforms import Software
from lineproof.project import Project
from lineproof.studies.study import RATES
from lineproof.traffic.profiles import Profile

from ..model.schema import RouterModel
from .published import modelled_variants, published_studies


@dataclass(frozen=True, slots=True)
class ModelledRow:
    """One row: *software* (its name in the platform's file: ``software_name``) with *profile*."""

    name: str
    software_name: str
    software: Software
    model: RouterModel
    profile: Profile
    bidirectional: bool = False


def modelled_rows(project: Project) -> tuple[ModelledRow, ...]:
    """The rows of all rates without a firewall. Raises ConfigError for files that are not as they should be."""
    return tuple(
        ModelledRow(
            f"{variant.study.study} {variant.name}",
            variant.software,
            variant.platform.software[variant.software],
            variant.model,
            variant.traffic.profile,
            variant.traffic.bidirectional,
        )
        for variant in modelled_variants(project, published_studies(project))
        if variant.study.measures[variant.row].kind in RATES
        and "firewall" not in variant.study.variants[variant.variant].configured
    )
