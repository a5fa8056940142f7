"""Whether testbed files' addresses fit the traffic that is always sent: for ``lineproof check``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from ..errors import LineproofError
from ..generators.trex.profile_loader import TrexProfileLoader
from ..project import Project
from ..session.plan import misfits_of
from ..testbed.files import read_testbed
from ..traffic.catalogue import Catalogue


def address_findings(project: Project, testbeds: Iterable[str]) -> tuple[list[str], list[str]]:
    """What is wrong with addresses in *testbeds*, and warnings; files that cannot be read are problems elsewhere."""
    problems: list[str] = []
    warnings: list[str] = []
    with contextlib.suppress(LineproofError):
        catalogue = Catalogue.read(project.profiles, TrexProfileLoader(""))
        for name in testbeds:
            with contextlib.suppress(LineproofError):
                for misfit in misfits_of(read_testbed(project.testbeds, name), catalogue):
                    words = str(misfit.located(project.testbeds, name))
                    (problems if misfit.certain else warnings).append(words)
    return problems, warnings
