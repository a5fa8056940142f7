"""Opening and closing a testbed of any kind: the one entrance to this package."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import TracebackType
from typing import Protocol

from ..errors import ConfigError
from ..platforms import Platform
from .facts import TestbedFacts
from .hardware import HardwareBlueprint, hardware_facts
from .keeper_client import KeeperClient
from .keeper_plan import Facts, KeeperPlan
from .leases import clear_stale, release, reserve
from .settings import HardwareSettings, SimulatedSettings, Testbed
from .trex.server import log

LOG = 1 << 20
"""Characters of a server's log that are kept, from its end."""


class Blueprint(Protocol):
    """What is to be started for a testbed, and what is known of it then."""

    def plan(self) -> KeeperPlan:
        """For the keeper."""
        ...

    def facts(self, ready: Facts) -> TestbedFacts:
        """From what the processes said of themselves."""
        ...


class OpenTestbed:
    """An open testbed. :meth:`close` it; if its owner is killed instead, it closes by itself within seconds.

    ``cleared``: a sentence for each thing that an earlier, killed testbed had left and that was cleared up.
    ``generator_log``: after :meth:`close`, what a TRex server that was started here said.
    """

    def __init__(self, facts: TestbedFacts, keeper: KeeperClient | None = None, cleared: tuple[str, ...] = ()) -> None:
        self.facts = facts
        self.cleared = cleared
        self.generator_log = ""
        self._keeper = keeper

    def problems(self) -> tuple[str, ...]:
        """Sentences on the testbed's processes that have ended since it was opened; empty while all is well."""
        return tuple(str(death) for death in self._keeper.deaths()) if self._keeper else ()

    def forgive(self, limit: float = 0.0) -> None:
        """Let :meth:`problems` tell no more of processes that were started again since they ended.

        Waits up to *limit* s for those that are about to be.
        """
        if self._keeper:
            self._keeper.forgive(limit)

    @property
    def failures(self) -> tuple[str, ...]:
        """After :meth:`close`: what could not be taken down in the ordinary way."""
        return self._keeper.failures if self._keeper else ()

    def close(self) -> None:
        """Stop the testbed's processes and remove what was made for it. Harmless when repeated."""
        if self._keeper:
            self.generator_log = self.generator_log or self._read_log()
            self._keeper.close()

    def _read_log(self) -> str:
        if self.facts.runtime is None:
            return ""
        with contextlib.suppress(OSError):
            return log(self.facts.runtime).read_text(encoding="utf-8", errors="replace")[-LOG:]
        return ""

    def __enter__(self) -> OpenTestbed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_testbed(
    testbed: Testbed,
    platform: Platform,
    software: str,
    *,
    platform_file: Path,
    rpc_port: int = 0,
    pub_port: int = 0,
    bypass: bool = False,
) -> OpenTestbed:
    """Clear what killed testbeds left, then start this one and wait until it serves.

    ``platform_file`` is where *platform* was read from; ``rpc_port`` and ``pub_port`` are the embedded server's TCP
    ports (0: free ones). *bypass*: without a router, the generator's ports connected to each other; on hardware that is
    for a person to do. Raises ConfigError for a software that the platform has not, TestbedError, with everything
    taken down again, when the testbed cannot be started.
    """
    if software not in platform.software:
        raise ConfigError(f"no software '{software}' here; known: {', '.join(platform.software)}", platform_file)
    cleared = tuple(clear_stale())
    if isinstance(testbed, HardwareSettings) and testbed.generator.start is None:
        return OpenTestbed(hardware_facts(testbed, platform, software), cleared=cleared)
    lease = reserve()
    try:
        blueprint: Blueprint
        if isinstance(testbed, HardwareSettings):
            blueprint = HardwareBlueprint(testbed, platform, software, lease)
        elif isinstance(testbed, SimulatedSettings):
            from .simulated import SimulatedBlueprint

            blueprint = SimulatedBlueprint(
                testbed, platform, software, platform_file, lease, rpc_port, pub_port, bypass=bypass
            )
        else:
            from .netns import NetnsBlueprint

            blueprint = NetnsBlueprint(testbed, platform, software, lease, rpc_port, pub_port, bypass=bypass)
        keeper = KeeperClient.start(blueprint.plan())
    except BaseException:
        release(lease.path)
        raise
    try:
        return OpenTestbed(blueprint.facts(keeper.facts), keeper, cleared)
    except BaseException:
        keeper.close()
        raise
