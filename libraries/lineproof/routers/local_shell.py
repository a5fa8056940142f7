"""The shell of this machine."""

from __future__ import annotations

import time

from ..errors import TestbedError
from ..system import children
from ..visible import visible
from .base import Result
from .shell_output import plain_text


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
