"""Commands of a testbed's file that run on this machine, and the secrets that they name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from ..errors import TestbedError
from ..visible import shortened
from . import children
from .login import Secrets

LIMIT = 30.0
"""Seconds for a command."""


Command = Annotated[str, Field(min_length=1, max_length=2000)]
"""A line for ``/bin/sh``."""


def run_here(command: str, names: Sequence[str], secrets: Secrets, who: str) -> str:
    """Return what *command* prints, run by /bin/sh with the secrets *names* in its environment alone.

    The secrets are masked in what it prints. *who*: the device, for messages. Raises TestbedError if the command fails
    or takes longer than LIMIT s.
    """
    more = {name: secrets.read(name, "secret", who) for name in names}
    try:
        ran = children.run(("/bin/sh", "-c", command), LIMIT, env=children.environment(more))
    except OSError as error:
        raise TestbedError(f"{who}: no command runs on this machine: {error.strerror}") from None
    except children.TimeoutExpired:
        raise TestbedError(f"{who}: its command did not end within {LIMIT:g} s") from None
    if ran.returncode:
        reason = shortened(secrets.masked(ran.stderr, names).strip()) or "no reason"
        raise TestbedError(f"{who}: its command failed with status {ran.returncode}: {reason}")
    return secrets.masked(ran.stdout, names)
