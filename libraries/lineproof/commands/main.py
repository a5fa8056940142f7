"""The command line: which commands there are, and how each ends."""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import io
import os
import signal
import sys
import textwrap
from collections.abc import Callable, Container, Sequence
from typing import NoReturn

import argcomplete

from .. import __version__
from ..errors import in_words
from ..system.children import become, bench_command
from ..system.signals import interrupt_words, termination_as_interrupt

EXIT_STATUS = """\
exit status, of every command:
  0  done, and nothing is wrong
  1  done, and something is wrong: a file or testbed, a figure out of bounds, a sentence proven worse, an altered run
  2  not done: wrong arguments or files, or a testbed that does not answer; one sentence says what
  130  interrupted; 141  nobody reads the output any more
"""


COMMANDS = {
    "init": "make a project in this folder that runs at once, simulated",
    "check": "read every file and sentence, without a testbed",
    "doctor": "is this testbed fit for a run? Step by step, without traffic",
    "restore": "undo what an earlier run has left on a router",
    "measure": "how much a new router carries, without any threshold: NDR and PDR of sizes, flows, directions",
    "calibrate": "what the generator itself carries, the router bypassed",
    "summary": "each sentence of a run: promised, measured, margin, verdict; also of a killed run",
    "gate": "may this be released? Beside a baseline, too: exit status, JUnit and Markdown for CI",
    "verify": "is a run's folder as the run left it? What was altered, added or removed",
    "signoff": "the sheet to print and sign: promised, measured, who answers for what; signs it too",
    "rejudge": "judge a recorded run again, from its folder alone",
    "history": "all runs in one store, and what became better or worse over time",
    "study": "variants of a router measured and compared, also with published figures",
}
"""Modules beside this one, with ``add_arguments(parser)`` and ``run(arguments)``, and their summaries.

Each is imported only when it is called: they need different packages.
"""

BENCH_COMMANDS = {
    "serve": "start the bench without hardware for other clients and print its ports (extra 'bench')",
}


class WrappedLines(argparse.RawDescriptionHelpFormatter):
    """A formatter that keeps the lines of a text, and wraps each to the terminal's width."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(textwrap.fill(line, width, subsequent_indent=" " * 5) for line in text.splitlines())


def command_parser(loaded: Container[str]) -> argparse.ArgumentParser:
    """Return the parser of all commands with their summaries, and of the arguments of those in *loaded*."""
    parser = argparse.ArgumentParser(
        prog="lineproof",
        description="Acceptance tests for router performance SLAs. Robot Framework runs the tests themselves:"
        " robot tests/netgate6100.robot",
        epilog=f"'lineproof COMMAND --help' shows a command's arguments.\n\n{EXIT_STATUS}",
        formatter_class=WrappedLines,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, epilog=EXIT_STATUS, formatter_class=WrappedLines)
        if name in loaded:
            module = importlib.import_module(f".{name}", __package__)
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    for name, summary in BENCH_COMMANDS.items():
        commands.add_parser(name, help=summary, add_help=False)
    return parser


def main(argv: Sequence[str]) -> int:
    """Run one command; returns its exit status. SystemExit: ``--help``, or wrong arguments."""
    if argv and argv[0] in BENCH_COMMANDS:
        return run_bench(argv)
    parser = command_parser(argv[:1])
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help()
        return 0
    status: int = arguments.run(arguments)
    return status


def command_line() -> NoReturn:
    """Run the console script ``lineproof``, and end the process."""
    if "_ARGCOMPLETE" in os.environ:
        argcomplete.autocomplete(command_parser(COMMANDS))
    finish(lambda: main(sys.argv[1:]))


def run_bench(argv: Sequence[str]) -> int:
    """Replace this process by the bench's program with *argv*. Raises TestbedError if it is not installed."""
    program = [*bench_command(argv[0]), *argv[1:]]
    sys.stdout.flush()
    become(program)


NOT_DONE = 2
INTERRUPTED = 130

_OF_OUTPUT = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors that name no file and come from printing: files of ours are written with their name."""


def finish(run: Callable[[], int]) -> NoReturn:
    """End this process with the status that *run* returns; any error is one paragraph on standard error."""
    status = NOT_DONE
    for stream in (sys.stdout, sys.stderr):
        # characters that the terminal's set lacks are escaped (LANG=C, PYTHONIOENCODING=ascii)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
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
        status = 141  # as of a process that SIGPIPE ends: 'lineproof doctor … | head -1'
        if not isinstance(error, BrokenPipeError):
            status = NOT_DONE
            _complain(f"the output cannot be written: {error.strerror}")
    sys.exit(status)


def _complain(problem: str) -> None:
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(f"lineproof: {problem}", file=sys.stderr, flush=True)
