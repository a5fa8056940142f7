"""A simulated router behind its SSH server, and the commands that studies run there."""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator, Container, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from lineproof.platforms import RouterSetup

from .bench import EmbeddedBench
from .shells import freebsd, linux, vpp
from .shells.machine import CommandLine, CommandOutput, Machine
from .shells.server import listen
from .shells.ssh_library import asyncssh


@asynccontextmanager
async def listening(specification: Mapping[str, Any], bench: EmbeddedBench) -> AsyncIterator[dict[str, Any]]:
    """Serve the shell of the model's router, and yield ``ssh_port`` and ``host_key``, which is a new one.

    ``shells`` of *specification*: ``user`` and ``authorized_key`` (OpenSSH) that may log in.
    """
    key = asyncssh.generate_private_key("ssh-ed25519")
    box = machine(bench, specification.get("setups") or ())
    async with await listen(
        box, **specification["shells"], host_key=key, query=lambda: bench.router.ssh_fault()
    ) as acceptor:
        yield {
            "ssh_port": acceptor.get_port(),
            "host_key": " ".join(key.export_public_key().decode().split()[:2]),
        }


def machine(bench: EmbeddedBench, setups: Sequence[Mapping[str, Any]]) -> Machine:
    """Return the machine of the model's router. *setups*: what a study's commands make of it."""
    state = bench.router.state()
    names = [interface.name for interface in state.interfaces]
    commands, memory = {
        "vpp": (vpp.software, linux.first_memory(())),
        "linux": (linux.software, linux.first_memory(names)),
        "freebsd": (freebsd.software, freebsd.first_memory(names)),
    }[state.software]
    own = commands()
    return Machine(own, lambda: bench.router, memory, StudyCommands(setups, own).run)


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
