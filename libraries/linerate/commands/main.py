"""The command line: which command, and how it ends."""

from __future__ import annotations

import importlib
import sys

from .. import __version__
from ..errors import LinerateError

USAGE = f"""linerate {__version__}

  python -m linerate init [NAME]            make a project here that runs at once, simulated
  python -m linerate check [SUITE …]        every file and sentence read, without a testbed; exit status 1: wrong
  python -m linerate doctor TESTBED …       is this testbed fit for a run? Exit status 1: something is wrong
  python -m linerate calibrate TESTBED …    what the generator itself carries, the router bypassed
  python -m linerate compare RUN RUN        what two runs of a suite measured; exit status 1: proven worse

With the extra 'bench' (pip install 'linerate[bench]'):
  python -m linerate serve [options]        start the bench without hardware for other clients and print its ports
  python -m linerate study [NAME]           a study of that bench; without a name: which there are

Acceptance tests are run by Robot Framework: robot tests/netgate6100.robot"""

COMMANDS = {
    "init": "init",
    "check": "check",
    "doctor": "doctor",
    "calibrate": "calibrate",
    "compare": "compare",
    "serve": "bench",
    "study": "bench",
}


def main(argv: list[str]) -> int:
    """Run one command; returns the exit status: 0 good, 1 a figure is outside its bound, 2 it could not run."""
    match argv:
        case [] | ["-h" | "--help", *_]:
            print(USAGE)
            return 0
        case ["--version"]:
            print(__version__)
            return 0
        case [name, *rest] if name in COMMANDS:
            # imported here: commands need different packages
            module = importlib.import_module(f".{COMMANDS[name]}", __package__)
            words = argv if COMMANDS[name] == "bench" else rest
        case _:
            print(f"linerate: '{' '.join(argv)}' is not a command\n\n{USAGE}", file=sys.stderr)
            return 2
    try:
        result: int = module.main(words)
        return result
    except LinerateError as error:
        print(f"linerate: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def command_line() -> None:
    """The console script ``linerate``."""
    sys.exit(main(sys.argv[1:]))
