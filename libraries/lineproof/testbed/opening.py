"""Opening and closing a testbed of any kind: the entry point of this package."""

from __future__ import annotations

import contextlib
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from ..core.router_facts import RouterFacts
from ..errors import ConfigError, TestbedError
from ..platforms import Platform, RouterSetup
from ..routers.base import SshShell, plain_text
from ..routers.linux import read_host
from ..simulation.faults import InjectedFault
from ..system.login import ENVIRONMENT, Login, Secrets
from ..visible import visible
from .facts import TestbedFacts
from .hardware import hardware_facts, start_hardware
from .in_use import HeldTestbed
from .lab.place import LabPlace
from .process import Belongings, Program, TestbedProcess
from .settings import HardwareSettings, SimulatedSettings, Testbed
from .simulated import start_simulated
from .waiting_time import Say, silent


@dataclass(eq=False)
class OpenTestbed:
    """An open testbed. :meth:`close` it; if its owner is killed instead, it closes by itself within seconds.

    ``belongings``: what was started for it. ``host``: of its generator, as it was read before anything was started;
    None where there is no way to it. ``lab``: labgrid's place that it is, None if it is none; ``held`` is given back
    when it closes. ``say`` prints a line while something is waited for. ``logs``: after :meth:`close`, by process, what
    those that it started wrote to their logs, if anything: the last MB; ``failures``: what could not be taken down in
    order, in words.
    """

    facts: TestbedFacts
    belongings: Belongings | None = None
    host: GeneratorHost | None = None
    lab: LabPlace | None = None
    held: HeldTestbed | None = None
    say: Say = silent
    logs: dict[str, str] = field(default_factory=dict)
    failures: tuple[str, ...] = ()

    @property
    def _programs(self) -> list[Program]:
        return self.belongings.programs if self.belongings else []

    @property
    def runs(self) -> bool:
        """Return whether all that was started for it runs."""
        return all(program.status() is None for program in self._programs)

    def problems(self) -> tuple[str, ...]:
        """A sentence for each of the testbed's processes that ended since it was opened, and why it is not ours."""
        ended = [problem for program in self._programs for problem in program.problems()]
        return (*ended, *(self.lab.problems() if self.lab else ()))

    def cause(self, fault: InjectedFault) -> None:
        """Let *fault* happen on a simulated testbed, in addition to earlier ones. Raises TestbedError."""
        for program in self._programs:
            if isinstance(program, TestbedProcess):
                program.ask({"fault": fault.model_dump(by_alias=True, exclude_none=True)})

    def close(self) -> None:
        """Stop the testbed's processes, remove what was made for it, and give it back. Harmless when repeated."""
        with contextlib.ExitStack() as stack:
            if self.held:
                stack.callback(self.held.close)
            if self.belongings:
                logs = self.belongings.logs()
                self.logs = self.logs or {name: visible(plain_text(text)) for name, text in logs.items()}
                self.failures += self.belongings.close()

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
    ports: tuple[int, int] = (0, 0),
    bypass: bool = False,
    secrets: Secrets = ENVIRONMENT,
    setups: tuple[RouterSetup, ...] = (),
    lab: LabPlace | None = None,
    held: HeldTestbed | None = None,
    say: Say = silent,
) -> OpenTestbed:
    """Wait until this testbed is free, start it, and wait until it is ready.

    ``platform_file`` is the file of *platform*; *ports*: TCP ports of the embedded server's requests and events (0:
    free ones). *bypass*: without a router, the generator's ports connected to each other (on hardware a person does
    that). *secrets*: of the logins in the testbed file. *setups*: what a study's commands may make of a simulated
    router; its shell knows these commands beside its own. *lab*: labgrid's place, where a pool has acquired it. *held*:
    the testbed, where its owner has it for several sessions; it is not given back then. Raises ConfigError for a
    software that the platform does not have, and TestbedError, with everything taken down again, if the testbed cannot
    be started.
    """
    if software not in platform.software:
        raise ConfigError(f"no software '{software}' here; known: {', '.join(platform.software)}", platform_file)
    with contextlib.ExitStack() as failing:
        own = HeldTestbed.take(testbed, say, lab) if held is None else None
        if own is not None:
            failing.callback(own.close)
        elif held is not None:
            held.check()
        lab = (own or held or HeldTestbed()).lab
        host, belongings = None, None
        if isinstance(testbed, HardwareSettings):
            facts = hardware_facts(testbed, platform, software, secrets)
            host = read_generator_host(facts.generator.login)
        if not isinstance(testbed, HardwareSettings) or testbed.starts_generator:
            belongings = Belongings()
            failing.callback(belongings.close)
            if isinstance(testbed, HardwareSettings):
                start_hardware(testbed, facts, belongings)
            elif isinstance(testbed, SimulatedSettings):
                box = platform, software, platform_file
                facts = start_simulated(testbed, *box, belongings, ports, bypass=bypass, setups=setups)
            else:
                from .netns import start_netns

                facts = start_netns(testbed, platform, software, belongings, ports, bypass=bypass)
        opened = OpenTestbed(facts, belongings, host, lab, own, say)
        failing.pop_all()
        return opened


ROLE = "the generator's host"


@dataclass(frozen=True, slots=True)
class GeneratorHost:
    """The facts that were read; ``problem``: why nothing was."""

    facts: RouterFacts = field(default_factory=RouterFacts)
    problem: str = ""


def read_generator_host(login: Login | None) -> GeneratorHost | None:
    """Return what the generator's host shows; None where the testbed file has no way to it. Never raises."""
    if login is None:
        return None
    try:
        with closing(SshShell(login, who=ROLE)) as shell:
            shell.open()
            return GeneratorHost(read_host(shell))
    except TestbedError as error:
        return GeneratorHost(problem=str(error))
