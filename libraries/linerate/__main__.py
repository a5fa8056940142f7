"""``python -m linerate study NAME``, ``… serve``, ``… doctor BENCH``, ``… calibrate BENCH``, ``… compare RUN RUN``."""

from __future__ import annotations

import importlib
import sys

from . import __version__
from .errors import LinerateError

STUDIES = {
    "characteristic": "how often each decision rule passes a router, by its true capacity (no traffic)",
    "cost": "traffic that each decision rule needs for a verdict, and how often it is wrong (no traffic)",
    "fidelity": "published rows against what the forwarding model says (no traffic)",
    "faults": "what the acceptance procedure makes of each fault of the simulated bench",
    "overhead": "wall time of a trial less its duration, in real time, against the embedded server",
    "wire": "64-byte frames per second of the embedded server beside trafgen, and exact counts (root)",
}

USAGE = "\n".join(
    [
        f"linerate {__version__}",
        "",
        "  python -m linerate study NAME [options]   measure the bench itself:",
        *(f"      {name:<14} {what}" for name, what in STUDIES.items()),
        "  python -m linerate serve [options]        start the embedded bench for other clients and print its ports",
        "  python -m linerate compare RUN RUN        what two runs of a suite measured; exit status 1: proven worse",
        "  python -m linerate doctor TESTBED …       is this bench fit for a run? Exit status 1: something is wrong",
        "  python -m linerate calibrate TESTBED …    what the generator itself carries, the router bypassed",
        "",
        "Acceptance tests are run by Robot Framework: robot tests/netgate6100.robot",
    ]
)


def main(argv: list[str]) -> int:
    """Run one command; returns the exit status: 0 good, 1 a figure is outside its bound, 2 it could not run."""
    match argv:
        case ["study", name, *rest] if name in STUDIES:
            module = f"studies.{name}"
        case ["serve", *rest]:
            module = "studies.serve"
        case ["compare", *rest]:
            module = "compare"
        case ["calibrate", *rest]:
            module = "calibrate"
        case ["doctor", *rest]:
            module = "doctor"
        case [] | ["-h" | "--help", *_]:
            print(USAGE)
            return 0
        case ["--version"]:
            print(__version__)
            return 0
        case _:
            print(f"linerate: '{' '.join(argv)}' is not a command\n\n{USAGE}", file=sys.stderr)
            return 2
    try:
        # imported when asked for: a study may need what the others do not (root, matplotlib, the TRex client)
        result: int = importlib.import_module(f".{module}", __package__).main(rest)
        return result
    except LinerateError as error:
        print(f"linerate: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
