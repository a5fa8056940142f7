"""How a command ends: its exit status, one sentence for an error, and no traceback where nobody reads on."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from ..errors import LinerateError
from ..system.signals import interrupt_words, termination_as_interrupt

NOT_DONE = 2
INTERRUPTED = 130
CLOSED_PIPE = 141
"""As for a process that SIGPIPE ends: ``linerate doctor … | head -1``."""


def finish(run: Callable[[], int]) -> NoReturn:
    """End this process with the status that *run* returns."""
    status = NOT_DONE
    try:
        try:
            with termination_as_interrupt():
                status = run()
        except LinerateError as error:
            print(f"linerate: {error}", file=sys.stderr)
        except KeyboardInterrupt as error:
            status = INTERRUPTED
            print(f"linerate: {error or interrupt_words(signal.SIGINT)}", file=sys.stderr)
        finally:
            if sys.stdout is not None:  # closed by the shell: '>&-'
                sys.stdout.flush()
    except OSError as error:
        # what is left in the buffer must not be tried again when the interpreter ends
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = CLOSED_PIPE
        if not isinstance(error, BrokenPipeError):
            status = NOT_DONE
            print(f"linerate: the output cannot be written: {error.strerror}", file=sys.stderr)
    sys.exit(status)
