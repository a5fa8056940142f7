"""The generator's host: read over the testbed's login, or here, before a server is started on it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field

from ..counts.host_state import HostState
from ..errors import TestbedError
from ..routers.base import Shell
from ..routers.host_reading import read_host_state
from ..routers.local_shell import local_shell
from ..routers.ssh_shell import SshShell
from ..system.login import Login
from .trex.own_config import with_own_config
from .trex.settings import TrexGeneratorSettings
from .trex.start_findings import StartFinding, StartPlan, start_findings

ROLE = "the generator's host"


@dataclass(frozen=True, slots=True)
class GeneratorHost:
    """What was read of it; ``problem``: why nothing was. ``findings``: about a start of TRex that is asked for."""

    state: HostState = field(default_factory=HostState)
    problem: str = ""
    findings: tuple[StartFinding, ...] = ()

    def check_start(self) -> None:
        """Raise TestbedError if the start must not be tried."""
        if refused := [found.text for found in self.findings if found.refused]:
            raise TestbedError(f"TRex was not started: {'; '.join(refused)}")

    @property
    def explanation(self) -> str:
        """The findings in a sentence, for a start that failed; "" without any."""
        return "; ".join(found.text for found in sorted(self.findings, key=lambda found: not found.stops))


def read_generator_host(generator: TrexGeneratorSettings, login: Login | None) -> GeneratorHost | None:
    """What the generator's host shows; None where the testbed file has no way to it. Never raises."""
    start = generator.start
    local = start is not None and start.host == "local"
    if not local and login is None:
        return None
    try:
        if local or login is None:
            return _read(local_shell, generator)
        with closing(SshShell(login, who=ROLE)) as shell:
            shell.open()
            return _read(shell, generator)
    except TestbedError as error:
        return GeneratorHost(problem=str(error))


def _read(shell: Shell, generator: TrexGeneratorSettings) -> GeneratorHost:
    if generator.start is None:
        return GeneratorHost(read_host_state(shell))
    plan, problems = _plan(generator), tuple[StartFinding, ...]()
    if not plan.interfaces:
        plan, problems = with_own_config(shell, plan)
    state = read_host_state(shell, plan.interfaces)
    return GeneratorHost(state, findings=(*problems, *start_findings(state, plan)))


def _plan(generator: TrexGeneratorSettings) -> StartPlan:
    start = generator.start
    if start is None:
        return StartPlan("")
    threads = start.threads
    named = (
        ()
        if threads is None
        else (threads.master, threads.latency, *(n for pair in threads.pairs for n in pair.threads))
    )
    return StartPlan(
        home=generator.trex_home or "",
        interfaces=start.interfaces,
        cores=start.cores,
        threads=named,
        memory=start.memory,
        prefix=start.prefix or "",
        extra=start.extra,
        low_end=start.is_low_end,
    )
