"""Programs that send frames, as YAML files describe them: ``variables/programs/*.yaml``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from ...command_values import WORD_IN_BRACES, GroupPattern
from ...config import Config
from ...errors import TestbedError
from ..base import Abilities

VALUES = {"program", "interface", "mac", "router_mac", "link_wait", "mtu", "own_mtu", "router", "peer", "control"}
VALUES |= {"own", "far", "source", "destination", "source_port", "port", "size", "longest", "length"}
VALUES |= {"count", "pps", "bits", "payload_bits"}
"""The ``{names}`` in a command; ``docs/generators.md`` says what each stands for."""

STOPPED = 124
"""Status of a program that did not end within its limit, and ended when it was asked to (timeout(1))."""


def filled(command: str, values: Mapping[str, object]) -> str:
    """Return *command* with *values* in place of its ``{names}``, each as one word of the shell."""
    return WORD_IN_BRACES.sub(lambda name: shlex.quote(str(values[name[1]])), command)


def _checked_names(command: str) -> str:
    if unknown := sorted(set(WORD_IN_BRACES.findall(command)) - VALUES):
        raise ValueError(f"'{{{unknown[0]}}}' stands for nothing; expected any of {', '.join(sorted(VALUES))}")
    return command


Command = Annotated[str, Field(min_length=1), AfterValidator(_checked_names)]


@dataclass(frozen=True, slots=True)
class Ran:
    """A program that has ended: its exit ``status``, what it wrote, and its ``cpu`` seconds (None: unknown)."""

    status: int
    output: str
    cpu: float | None = None


class PortChange(Config):
    """A command that sets something on a port, and the one that undoes it when the port is given back."""

    do: Command
    undo: Command


class Example(Config):
    """An output of the program, and the groups that its report ``gives``. ``of``: the key with the expression."""

    of: Literal["report", "received", "failed"] = "report"
    output: str
    gives: Mapping[str, str]


class Description(Config):
    """A program that sends frames: its commands, its report, and what it can.

    A command may have ``{names}`` of :data:`VALUES`. They are put into it here only, quoted for the shell of a port.

    ``needs``: programs that the host must have, and Debian's package of each. ``version``: a command that prints it.
    ``can``: its abilities, as :data:`..base.ABILITIES` names them; one that lacks ``flows`` is started once for each
    of up to ``most_flows``, one that has them sends the list ``frames.cfg``, in trafgen's language. ``sockets``: it
    sends from sockets, so that the kernel adds the headers, and its ports must be in different networks.
    ``fragments``: it sends the two sizes of a datagram in fragments, because ``prepare`` sets the port's ``{mtu}``.

    ``free``: a command that prints why a port cannot be taken, or nothing. Changes: ``prepare`` at both ends of each
    flow, ``pace`` before a trial at the port that sends. ``receive``: a program at the other port, for which ``ready``
    waits. ``send``: one simple command, which ends when it has sent ``{count}``.

    ``report``: an expression whose last match in the output of ``send`` has groups ``frames``, ``seconds`` and
    ``bytes`` (without FCS). Without ``seconds`` the interface is watched for them; ``wrong_by``: s by which they may
    be too long and too short. ``received``: the same of ``receive``; then the card is not the kernel's while they run,
    and the programs count; else the interfaces do. ``failed``: an expression with the ``words`` of a failure.

    ``control_frames``: those that a flow may have beside the trial's, to control it. ``examples`` are tried when the
    file is read.
    """

    program: str
    needs: Mapping[str, str]
    version: Command
    can: Annotated[tuple[str, ...], AfterValidator(lambda can: Abilities(frozenset(can)) and can)]
    most_flows: int = 1
    sockets: bool = False
    fragments: bool = False
    free: Command = ":"
    prepare: tuple[PortChange, ...] = ()
    pace: tuple[PortChange, ...] = ()
    receive: Command | None = None
    ready: Command = "true"
    send: Command
    report: GroupPattern
    received: GroupPattern | None = None
    failed: GroupPattern | None = None
    wrong_by: tuple[float, float] = (0.0, 0.0)
    control_frames: int = 0
    examples: tuple[Example, ...] = ()

    @model_validator(mode="after")
    def _check_examples(self) -> Self:
        for example in self.examples:
            gives = self._last(example.of, example.output)
            if gives != dict(example.gives):
                raise ValueError(f"an example of '{example.of}' gives {gives or 'nothing'}, expected {example.gives}")
        return self

    @property
    def lists_flows(self) -> bool:
        """Return whether one program sends all flows, from a list of frames."""
        return "flows" in self.can

    def read(self, ran: Ran, where: str, key: str = "report") -> Mapping[str, str]:
        """Return the groups of the last match of the expression *key* in what a program wrote. Raises TestbedError."""
        if ran.status != STOPPED and (failure := self._last("failed", ran.output)):
            raise TestbedError(f"{self.program} on {where}: {failure['words']}")
        report = self._last(key, ran.output)
        if "frames" not in report or ran.status not in (0, STOPPED):
            shown = " ".join(ran.output.split())[-300:] or "nothing"
            raise TestbedError(f"{self.program} on {where} gave no report (status {ran.status}): {shown}")
        return report

    def _last(self, key: str, output: str) -> dict[str, str]:
        """Return the groups of the last match of the expression *key*; none without one."""
        matches = list(re.finditer(getattr(self, key) or r"(?!)", output, re.MULTILINE))
        return matches[-1].groupdict(default="0") if matches else {}
