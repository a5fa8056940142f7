"""How a command ends: its exit status, one sentence for an error, and no traceback where nobody reads on."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from ..errors import in_words
from ..system.signals import interrupt_words, termination_as_interrupt

NOT_DONE = 2
INTERRUPTED = 130
CLOSED_PIPE = 141
"""As for a process that SIGPIPE ends: ``lineproof doctor … | head -1``."""

_OF_OUTPUT = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors that name no file and come from printing: files of ours are written with their name."""


def finish(run: Callable[[], int]) -> NoReturn:
    """End this process with the status that *run* returns; any error is one paragraph on standard error."""
    status = NOT_DONE
    _take_any_text()
    try:
        try:
            with termination_as_interrupt():
                status = run()
        except KeyboardInterrupt as error:
            status = INTERRUPTED
            _complain(str(error) or interrupt_words(signal.SIGINT))
        except Exception as error:  # no traceback, whatever it is
            if isinstance(error, OSError) and error.filename is None and error.errno in _OF_OUTPUT:
                raise
            _complain(in_words(error))
        finally:
            if sys.stdout is not None:  # closed by the shell: '>&-'
                sys.stdout.flush()
    except OSError as error:
        # what is left in the buffer must not be tried again when the interpreter ends
        with contextlib.suppress(OSError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = CLOSED_PIPE
        if not isinstance(error, BrokenPipeError):
            status = NOT_DONE
            _complain(f"the output cannot be written: {error.strerror}")
    sys.exit(status)


def _take_any_text() -> None:
    """Print what the terminal's character set lacks (LANG=C, PYTHONIOENCODING=ascii) as an escape, not as an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _complain(words: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(f"lineproof: {words}", file=sys.stderr, flush=True)
