"""The generator's host: read over the testbed's login, or here, before a server is started on it."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field

from ..core.router_facts import RouterFacts
from ..errors import TestbedError
from ..routers.base import Result
from ..routers.host_reading import read_host
from ..routers.shell_output import plain_text
from ..routers.ssh_shell import SshShell
from ..system import children
from ..system.login import Login
from ..visible import visible
from .trex.settings import TrexGeneratorSettings

ROLE = "the generator's host"


@dataclass(frozen=True, slots=True)
class GeneratorHost:
    """What was read of it; ``problem``: why nothing was."""

    facts: RouterFacts = field(default_factory=RouterFacts)
    problem: str = ""


def read_generator_host(generator: TrexGeneratorSettings, login: Login | None) -> GeneratorHost | None:
    """Return what the generator's host shows; None where the testbed file has no way to it. Never raises."""
    start = generator.start
    if start is not None and start.host == "local":
        return GeneratorHost(read_host(local_shell))
    if login is None:
        return None
    try:
        with closing(SshShell(login, who=ROLE)) as shell:
            shell.open()
            return GeneratorHost(read_host(shell))
    except TestbedError as error:
        return GeneratorHost(problem=str(error))


def local_shell(command: str, limit: float) -> Result:
    """A :data:`~lineproof.routers.base.Shell` on this machine. Raises TestbedError after *limit* s."""
    began = time.monotonic()
    try:
        found = children.run(("/bin/sh", "-c", command), limit)
    except children.TimeoutExpired:
        raise TestbedError(f"'{command}' did not end within {limit:g} s on this machine") from None
    except OSError as error:
        raise TestbedError(f"no command runs on this machine: /bin/sh: {error.strerror}") from None
    stdout, stderr = (visible(plain_text(text)) for text in (found.stdout, found.stderr))
    return Result(stdout, stderr, found.returncode, time.monotonic() - began)
