"""The description of a program that sends frames: a YAML file with its commands, its report, and what it can.

A command may have ``{names}`` of :data:`VALUES`. They are put into it here only, quoted for the shell of a port.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field

from ...command_values import compiled
from ...config import Config
from ..abilities import WORDS, Abilities

VALUES = {
    "program": "its path on the host",
    "interface": "of the port that the command is for",
    "mac": "of the sending port",
    "router_mac": 'that frames of the port go to; "": not known',
    "link_wait": "the testbed's key, s",
    "count": "frames, or datagrams, that a trial has of the flow",
    "pps": "frames/s of the load",
    "bits": "bit/s of the load, in frames without FCS",
    "payload_bits": "bit/s of the flow's load, in payload of UDP",
    "size": "bytes of a frame without FCS",
    "longest": "bytes of the longest without FCS",
    "length": "bytes of a datagram's payload",
    "source": "the flow's IPv4 address",
    "destination": "the flow's other IPv4 address",
    "source_port": "the flow's UDP port",
    "port": "the flow's other UDP port",
    "own": "the IPv4 address of the flow's end at the port",
    "far": "that of its other end",
    "router": "the router's IPv4 address at the port",
    "peer": "the port's own address and prefix length in the router's network",
    "control": 'the interface that goes past the router; "": there is none',
    "mtu": "bytes that the profile's fragments need",
    "own_mtu": "bytes of the interface before",
}
"""The ``{names}`` in a command, and what each stands for."""

BEYOND_PROGRAMS = ("own_frames", "latency", "capture", "live", "bursts", "own_counts", "promiscuous")
"""The abilities that no program of a host has."""

_NAME = re.compile(r"\{([a-z_]+)\}")


def filled(command: str, values: Mapping[str, object]) -> str:
    """Return *command* with *values* in place of its ``{names}``, each as one word of the shell."""
    return _NAME.sub(lambda name: shlex.quote(str(values[name[1]])), command)


def _checked_names(command: str) -> str:
    if unknown := sorted(set(_NAME.findall(command)) - VALUES.keys()):
        raise ValueError(f"'{{{unknown[0]}}}' stands for nothing; expected any of {', '.join(VALUES)}")
    return command


def _checked_report(pattern: str) -> str:
    if "frames" not in compiled(pattern).groupindex:
        raise ValueError("needs a group '(?P<frames>…)' around the number of frames")
    return pattern


def _checked_ability(name: str) -> str:
    if name not in WORDS:
        raise ValueError(f"'{name}' is no ability; expected any of {', '.join(WORDS)}")
    return name


Command = Annotated[str, Field(min_length=1), AfterValidator(_checked_names)]
Report = Annotated[str, AfterValidator(_checked_report)]


class PortChange(Config):
    """A command that sets something on a port, and the one that undoes it when the port is given back."""

    do: Command
    undo: Command


class Free(Config):
    """A command that prints nothing if a port is free, and why it is not: ``but``, with ``{found}``."""

    run: Command
    but: str


class Description(Config):
    """A program.

    ``needs``: programs that the host must have, and Debian's package of each. ``version``: a command that prints it.
    ``cannot``: abilities that it lacks beside :data:`BEYOND_PROGRAMS`; one that lacks ``flows`` is started once for
    each of up to ``most_flows``, one that has them sends the list ``frames.cfg``, in trafgen's language. ``sockets``:
    it sends from sockets, so that the kernel adds the headers, and its ports must be in different networks.
    ``fragments``: the change that lets a port send the two sizes of a datagram in fragments.

    ``free``: what must hold when a port is taken. Changes: ``prepare`` at both ends of each flow, ``pace`` before a
    trial at the port that sends. ``receive``: a program at the other port, for which ``ready`` waits. ``send``: one
    simple command, which ends when it has sent ``{count}``.

    ``report``: an expression whose last match in the output of ``send`` has groups ``frames``, ``seconds`` and
    ``bytes`` (without FCS). Without ``seconds`` the interface is watched for them; ``wrong_by``: s by which they may
    be too long and too short. ``received``: the same of ``receive``; then the card is not the kernel's while they run,
    and the programs count; else the interfaces do. ``failed``: an expression with the ``words`` of a failure.

    ``greetings``: frames that each sending and receiving program sends of its own before a trial's first;
    ``control_frames``: those that control it beside the trial's, where they pass the router.
    """

    program: str
    about: str
    needs: Mapping[str, str]
    version: Command
    cannot: tuple[Annotated[str, AfterValidator(_checked_ability)], ...] = ()
    most_flows: int = 1
    sockets: bool = False
    fragments: PortChange | None = None
    free: Free | None = None
    prepare: tuple[PortChange, ...] = ()
    pace: tuple[PortChange, ...] = ()
    receive: Command | None = None
    ready: Command = "true"
    send: Command
    report: Report
    received: Report | None = None
    failed: str | None = None
    wrong_by: tuple[float, float] = (0.0, 0.0)
    greetings: int = 0
    control_frames: int = 0

    @property
    def abilities(self) -> Abilities:
        """The abilities of the program."""
        lacking = dict.fromkeys((*BEYOND_PROGRAMS, *self.cannot), False)
        return Abilities(**lacking, most_flows=self.most_flows, fragments=self.fragments is not None)
