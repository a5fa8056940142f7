"""A simulated router's SSH server, as its specification says."""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator, Container, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from lineproof.errors import TestbedError
from lineproof.platforms import RouterSetup

from .bench import EmbeddedBench
from .shells import freebsd, linux, trex_host, vpp
from .shells.machine import CommandLine, CommandOutput, Commands, Machine, Memory
from .shells.server import listen
from .shells.ssh_library import asyncssh

SPECIFIED = {"software", "host", "port", "user", "authorized_key", "sudo"}


@asynccontextmanager
async def listening(specification: Mapping[str, Any], bench: EmbeddedBench | None) -> AsyncIterator[dict[str, Any]]:
    """Serve the shells of *specification*, and yield ``ssh_port`` and ``host_key``, which is a new one.

    ``software``: vpp, linux or freebsd on the model of *bench*, or trex-host, a machine for TRex with ``habits``
    (:mod:`.shells.trex_host`); ``host``, ``port`` (0: free); ``user`` and ``authorized_key`` (OpenSSH) that may log in;
    ``sudo``: whether the user may; ``setups`` that a study's commands make of the router. Raises TestbedError.
    """
    missing = SPECIFIED - specification.keys()
    if missing:
        raise TestbedError(f"the specification of the simulated router lacks {', '.join(sorted(missing))}")
    box = machine(specification, bench)
    key = asyncssh.generate_private_key("ssh-ed25519")
    host, port, user = str(specification["host"]), int(specification["port"]), str(specification["user"])
    authorized = str(specification["authorized_key"])
    query = (lambda: bench.router.ssh_fault()) if bench else dict
    async with await listen(box, host, port, user, authorized, key, query) as acceptor:
        yield {
            "ssh_port": acceptor.get_port(),
            "host_key": " ".join(key.export_public_key().decode().split()[:2]),
        }


def machine(specification: Mapping[str, Any], bench: EmbeddedBench | None) -> Machine:
    """Return the machine for *specification*. Raises TestbedError for software without a shell."""
    user, sudo, kind = str(specification["user"]), bool(specification["sudo"]), str(specification["software"])
    if kind == trex_host.KIND:
        software = trex_host.software(specification.get("habits") or ())
        return Machine(software, trex_host.no_router, Memory(), user, sudo)
    kinds: dict[str, Commands] = {
        "vpp": vpp.software(),
        "linux": linux.software(),
        "freebsd": freebsd.software(),
    }
    if kind not in kinds or bench is None:
        raise TestbedError(f"no simulated shell for software '{kind}'; there are {', '.join(kinds)}, each with a model")
    names = [interface.name for interface in bench.router.state().interfaces]
    memories: dict[str, Memory] = {"freebsd": freebsd.first_memory(names), "linux": linux.first_memory(names)}
    memory = memories.get(kind) or linux.first_memory(())
    override = StudyCommands(specification.get("setups") or (), kinds[kind]).run
    return Machine(kinds[kind], lambda: bench.router, memory, user, sudo, override)


class StudyCommands:
    """The pairs of *setups*, each a :class:`.RouterSetup` as a mapping. *own*: programs that the machine has.

    Each can be done once and undone once. What they set by ``sysctl`` can be read: before a change is undone, its
    value is looked at.
    """

    def __init__(self, setups: Sequence[Mapping[str, Any]], own: Container[str] = ()) -> None:
        self._own = own
        pairs = [pair for setup in setups for pair in RouterSetup.model_validate(setup).commands]
        self._undo_of: dict[str, str] = {}
        for pair in pairs:
            self._undo_of.setdefault(pair.given, pair.undo)
        self._texts = {(*shlex.split(pair.undo), ""): pair.undo for pair in pairs}
        self._texts |= {(*shlex.split(pair.do), pair.stdin): pair.given for pair in pairs}

    def run(self, words: Sequence[str], line: CommandLine) -> CommandOutput | None:
        """Run a command. None: it is no command of the study."""
        key = tuple(words)
        text = self._texts.get((*key, line.stdin))
        if text is None:
            return self._variable(key[-1], line, bare="-n" in key) if key[:1] == ("sysctl",) else None
        done, program = line.state.configuration.done, key[0]
        undone = [do for do in done if self._undo_of[do] == text]
        if text in self._undo_of and text not in done:
            done = (*done, text)
        elif undone:
            done = tuple(do for do in done if do != undone[-1])
        elif text in done:
            return CommandOutput("", f"{program}: File exists\n", 1)
        elif program in self._own:
            return None  # as pfSense's own pf, which is on before any study begins
        else:
            return CommandOutput("", f"{program}: No such file or directory\n", 1)
        line.change(replace(line.state.configuration, done=done))
        return CommandOutput()

    def _variable(self, name: str, line: CommandLine, bare: bool) -> CommandOutput | None:
        """``sysctl [-n] NAME`` of what the study sets: by its last command that is done, else by what undoes one."""
        done = line.state.configuration.done
        for text in (*reversed(done), *(undo for do, undo in self._undo_of.items() if do not in done)):
            found = _SETTING.fullmatch(text)
            if found and found["name"] == name:
                return CommandOutput(f"{found['value']}\n" if bare else f"{name}: {found['value']}\n")
        return None


_SETTING = re.compile(r"sysctl (?:-w )?(?P<name>[^\s=]+)=(?P<value>.*)")
