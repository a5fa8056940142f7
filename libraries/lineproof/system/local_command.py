"""Commands of a testbed's file that run on this machine, and the secrets that they name."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from ..command_values import LARGEST_OUTPUT
from ..config import matching
from ..errors import TestbedError
from ..visible import shortened
from . import children
from .login import Secrets

LIMIT = 30.0
"""Seconds for a command."""


def _of_its_own(value: str) -> str:
    if children.is_handed_on(value):
        raise ValueError(f"'{value}' is a variable that every program gets; expected one of its own: ROUTER_PASSWORD")
    return value


Variable = Annotated[
    str,
    matching(
        "[A-Z_][A-Z0-9_]*", "expected the name, in capitals, of an environment variable that holds it, not the secret"
    ),
    AfterValidator(_of_its_own),
]
Command = Annotated[str, Field(min_length=1, max_length=2000)]
"""A line for ``/bin/sh``."""


def run_here(command: str, names: Sequence[str], secrets: Secrets, who: str) -> str:
    """Return what *command* prints, run by /bin/sh with the secrets *names* in its environment alone.

    The secrets are masked in what it prints. *who*: the device, for messages. Raises TestbedError if the command fails,
    or takes longer than LIMIT s, or prints more than LARGEST_OUTPUT bytes.
    """
    more = {name: secrets.read(name, "secret", who) for name in names}
    until = time.monotonic() + LIMIT
    try:
        child = children.start(
            ("/bin/sh", "-c", command),
            env=children.environment(more),
            stdin=children.DEVNULL,
            stdout=children.PIPE,
            stderr=children.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise TestbedError(f"{who}: no command runs on this machine: {error.strerror}") from None
    with child:
        try:
            output, errors = _read(child, until, who)
            status = child.wait(max(0.0, until - time.monotonic()))
        except children.TimeoutExpired:
            raise TestbedError(f"{who}: its command did not end within {LIMIT:g} s") from None
        finally:
            children.kill_group(child)
    printed, said = (secrets.masked(text.decode(errors="replace"), names) for text in (output, errors))
    if status:
        raise TestbedError(f"{who}: its command failed with status {status}: {shortened(said.strip()) or 'no reason'}")
    return printed


def _read(child: children.Child[bytes], until: float, who: str) -> tuple[bytes, bytes]:
    """Return both outputs of *child*, whole."""
    output, errors = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        for stream, received in ((child.stdout, output), (child.stderr, errors)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, received)
        while selector.get_map():
            if time.monotonic() > until:
                raise TestbedError(f"{who}: its command did not end within {LIMIT:g} s")
            for key, _ in selector.select(max(0.0, until - time.monotonic())):
                part = os.read(key.fd, 4096)
                key.data.extend(part)
                if not part:
                    selector.unregister(key.fileobj)
            if len(output) + len(errors) > LARGEST_OUTPUT:
                raise TestbedError(f"{who}: its command prints more than {LARGEST_OUTPUT >> 10} KiB")
    return bytes(output), bytes(errors)
