"""Whether a simulated testbed can play the router of a platform, and which testbeds have the real one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from ..errors import ConfigError
from ..platforms import Platform
from ..project import Project, listed
from ..testbed.files import read_testbed_or_pool
from ..testbed.settings import HardwareSettings, SimulatedSettings


def check_simulable(project: Project, platform: Platform, software: str, testbed: str, instead: str = "") -> None:
    """Raise ConfigError where *platform* has no model of *software*, which the simulated *testbed* needs.

    *instead*: what else to do; "": name the testbed of the router, as a run does.
    """
    models = platform.model.get("software")
    if not platform.model:
        lack = "no 'model:'"
    elif isinstance(models, Mapping) and software not in models:
        lack = f"no '{software}' in 'model.software'"
    else:
        return
    raise ConfigError(
        f"has {lack}, so testbed '{testbed}' cannot simulate it; {instead or _own_testbeds(project)}; or add its"
        " physical parameters",
        project.platforms / f"{platform.platform}.yaml",
    )


def _own_testbeds(project: Project) -> str:
    found = list(_real_testbeds(project))
    if not found:
        return f"write a testbed of 'kind: hardware' in {project.testbeds}, and name it: -v TESTBED:NAME"
    more = f" (others here: {', '.join(found[1:])})" if found[1:] else ""
    return f"name the testbed that the router is in: -v TESTBED:{found[0]}{more}"


def _real_testbeds(project: Project) -> Iterator[str]:
    """The project's own testbeds that simulate no router, hardware first; of a wrong file it is not known."""
    others = []
    for path in listed(project.testbeds.own, "*.yaml"):
        with contextlib.suppress(ConfigError):
            found = read_testbed_or_pool(project.testbeds, path.stem)
            if isinstance(found, HardwareSettings):
                yield path.stem
            elif not isinstance(found, SimulatedSettings):
                others.append(path.stem)
    yield from others
