"""Opening and closing a testbed of any kind: the entry point of this package."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from ..errors import ConfigError, TestbedError
from ..platforms import Platform
from ..routers.shell_output import plain_text
from ..system.secrets import ENVIRONMENT, Secrets
from ..visible import visible
from .facts import TestbedFacts
from .generator_host import GeneratorHost, read_generator_host
from .hardware import HardwareSetup, hardware_facts
from .keeper_client import KeeperClient
from .keeper_plan import Facts, KeeperPlan
from .kept_logs import read_log
from .leases import clear_leftovers, create_lease, release
from .settings import HardwareSettings, SimulatedSettings, Testbed


class TestbedSetup(Protocol):
    """What a testbed of one kind starts, and the facts that are known once it runs."""

    def plan(self) -> KeeperPlan:
        """The keeper's plan."""
        ...

    def facts(self, ready: Facts) -> TestbedFacts:
        """The testbed's facts, given those of its processes' ready lines."""
        ...


class OpenTestbed:
    """An open testbed. :meth:`close` it; if its owner is killed instead, it closes by itself within seconds.

    ``cleared``: a sentence for each thing that an earlier, killed testbed had left and that was removed.
    ``host``: of its generator, as it was read before anything was started; None where there is no way to it.
    ``logs``: after :meth:`close`, by process, what those that it started wrote to their logs, if anything: the last MB.
    """

    def __init__(
        self,
        facts: TestbedFacts,
        keeper: KeeperClient | None = None,
        cleared: tuple[str, ...] = (),
        host: GeneratorHost | None = None,
    ) -> None:
        self.facts = facts
        self.cleared = cleared
        self.host = host
        self.logs: dict[str, str] = {}
        self._keeper = keeper

    def problems(self) -> tuple[str, ...]:
        """A sentence for each of the testbed's processes that ended since it was opened."""
        return tuple(str(death) for death in self._keeper.deaths()) if self._keeper else ()

    def forget_restarted(self, limit: float = 0.0) -> None:
        """Let :meth:`problems` leave out processes that were started again.

        Waits up to *limit* s for restarts that are due.
        """
        if self._keeper:
            self._keeper.forget_restarted(limit)

    @property
    def failures(self) -> tuple[str, ...]:
        """After :meth:`close`: what could not be taken down in order, in words."""
        return self._keeper.failures if self._keeper else ()

    def close(self) -> None:
        """Stop the testbed's processes and remove what was made for it. Harmless when repeated."""
        if self._keeper:
            self.logs = self.logs or self._read_logs()
            self._keeper.close()

    def _read_logs(self) -> dict[str, str]:
        paths = [] if self.facts.runtime is None else sorted(self.facts.runtime.glob("*.log"))
        login = self.facts.generator.login
        found = {path.stem: text for path in paths if (text := read_log(path))}
        return {name: visible(plain_text(login.masked(text) if login else text)) for name, text in found.items()}

    def __enter__(self) -> OpenTestbed:
        return self

    def __exit__(self, *_: object) -> None:
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
    secrets: Secrets = ENVIRONMENT,
) -> OpenTestbed:
    """Remove what killed testbeds left, then start this one and wait until it is ready.

    ``platform_file`` is the file of *platform*; ``rpc_port`` and ``pub_port`` are the embedded server's TCP ports (0:
    free ones). *bypass*: without a router, the generator's ports connected to each other (on hardware a person does
    that). *secrets*: of the logins in the testbed file. Raises ConfigError for a software that the platform does not
    have, and TestbedError, with everything taken down again, if the testbed cannot be started.
    """
    if software not in platform.software:
        raise ConfigError(f"no software '{software}' here; known: {', '.join(platform.software)}", platform_file)
    cleared = tuple(clear_leftovers())
    host = None
    if isinstance(testbed, HardwareSettings):
        facts = hardware_facts(testbed, platform, software, secrets)
        host = read_generator_host(testbed.generator, facts.generator.login)
        if testbed.generator.start is None:
            return OpenTestbed(facts, cleared=cleared, host=host)
        if host is not None:
            host.check_start()
    lease = create_lease()
    try:
        setup: TestbedSetup
        if isinstance(testbed, HardwareSettings):
            setup = HardwareSetup(testbed, platform, software, lease, secrets)
        elif isinstance(testbed, SimulatedSettings):
            from .simulated import SimulatedSetup

            setup = SimulatedSetup(testbed, platform, software, platform_file, lease, rpc_port, pub_port, bypass=bypass)
        else:
            from .netns import NetnsSetup

            setup = NetnsSetup(testbed, platform, software, lease, rpc_port, pub_port, bypass=bypass)
        keeper = _started(setup.plan(), host)
    except BaseException:
        release(lease.path)
        raise
    try:
        return OpenTestbed(setup.facts(keeper.facts), keeper, cleared, host)
    except BaseException:
        keeper.close()
        raise


def _started(plan: KeeperPlan, host: GeneratorHost | None) -> KeeperClient:
    """The plan's processes. Raises TestbedError, with what was read of *host* before if that may be the reason."""
    try:
        return KeeperClient.start(plan)
    except TestbedError as error:
        if host is None or not host.explanation:
            raise
        raise TestbedError(f"{error}; read there before the start: {host.explanation}") from error
