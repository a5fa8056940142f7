"""Opening and closing a testbed of any kind: the entry point of this package."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Protocol

from ..errors import ConfigError
from ..platforms import Platform, RouterSetup
from ..routers.shell_output import plain_text
from ..system.secrets import ENVIRONMENT, Secrets
from ..visible import visible
from .facts import TestbedFacts
from .generator_host import GeneratorHost, read_generator_host
from .hardware import HardwareSetup, hardware_facts
from .held import HeldTestbed
from .keeper_client import KeeperClient
from .keeper_plan import Facts, KeeperPlan
from .kept_logs import read_log
from .lab.place import LabPlace
from .leases import clear_leftovers, create_lease, release
from .settings import HardwareSettings, SimulatedSettings, Testbed
from .waiting_time import Say, silent


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
    ``lab``: labgrid's place that it is, None if it is none; *held* is given back when it closes. ``say`` prints a line
    while something is waited for.
    """

    def __init__(
        self,
        facts: TestbedFacts,
        keeper: KeeperClient | None = None,
        cleared: tuple[str, ...] = (),
        host: GeneratorHost | None = None,
        lab: LabPlace | None = None,
        held: HeldTestbed | None = None,
        say: Say = silent,
    ) -> None:
        self.facts = facts
        self.lab = lab
        self.say = say
        self._held = held
        self.cleared = cleared
        self.host = host
        self.logs: dict[str, str] = {}
        self._keeper = keeper

    def problems(self) -> tuple[str, ...]:
        """A sentence for each of the testbed's processes that ended since it was opened, and why it is not ours."""
        ended = tuple(str(death) for death in self._keeper.deaths()) if self._keeper else ()
        return (*ended, *(self.lab.problems() if self.lab else ()))

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
        """Stop the testbed's processes, remove what was made for it, and give it back. Harmless when repeated."""
        with contextlib.ExitStack() as stack:
            if self._held:
                stack.callback(self._give_back, self._held)
            if self._keeper:
                self.logs = self.logs or self._read_logs()
                self._keeper.close()

    def _give_back(self, held: HeldTestbed) -> None:
        held.close()
        if story := held.story():
            self.logs["labgrid"] = story

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
    setups: tuple[RouterSetup, ...] = (),
    lab: LabPlace | None = None,
    held: HeldTestbed | None = None,
    say: Say = silent,
) -> OpenTestbed:
    """Remove what killed testbeds left, wait until this one is free, start it, and wait until it is ready.

    ``platform_file`` is the file of *platform*; ``rpc_port`` and ``pub_port`` are the embedded server's TCP ports (0:
    free ones). *bypass*: without a router, the generator's ports connected to each other (on hardware a person does
    that). *secrets*: of the logins in the testbed file. *setups*: what a study's commands may make of a simulated
    router; its shell knows these commands beside its own. *lab*: labgrid's place, where a pool has acquired it. *held*:
    the testbed, where its owner has it for several sessions; it is not given back then. Raises ConfigError for a
    software that the platform does not have, and TestbedError, with everything taken down again, if the testbed cannot
    be started.
    """
    if software not in platform.software:
        raise ConfigError(f"no software '{software}' here; known: {', '.join(platform.software)}", platform_file)
    cleared = tuple(clear_leftovers())
    with contextlib.ExitStack() as failing:
        own = HeldTestbed.take(testbed, say, lab) if held is None else None
        if own is not None:
            failing.callback(own.close)
        elif held is not None:
            held.check()
        lab = (own or held or HeldTestbed()).lab
        host = None
        if isinstance(testbed, HardwareSettings):
            facts = hardware_facts(testbed, platform, software, secrets)
            host = None if testbed.trex is None else read_generator_host(testbed.trex, facts.generator.login)
            if not testbed.starts_generator:
                failing.pop_all()
                return OpenTestbed(facts, cleared=cleared, host=host, lab=lab, held=own, say=say)
        lease = create_lease()
        setup: TestbedSetup
        try:
            if isinstance(testbed, HardwareSettings):
                setup = HardwareSetup(testbed, platform, software, lease, secrets)
            elif isinstance(testbed, SimulatedSettings):
                from .simulated import SimulatedSetup

                setup = SimulatedSetup(
                    *(testbed, platform, software, platform_file, lease, rpc_port, pub_port),
                    bypass=bypass,
                    setups=setups,
                )
            else:
                from .netns import NetnsSetup

                setup = NetnsSetup(testbed, platform, software, lease, rpc_port, pub_port, bypass=bypass)
            keeper = KeeperClient.start(setup.plan())
        except BaseException:
            release(lease.path)
            raise
        failing.callback(keeper.close)
        opened = OpenTestbed(setup.facts(keeper.facts), keeper, cleared, host, lab, own, say)
        failing.pop_all()
        return opened
