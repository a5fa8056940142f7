"""The commands ``lineproof serve …`` and ``lineproof study NAME …``."""

from __future__ import annotations

import importlib
import sys

from lineproof.commands.ending import NOT_DONE, finish

STUDIES = {
    "characteristic": "how often each decision rule passes a router, by its true capacity (no traffic)",
    "cost": "traffic that each decision rule needs for a verdict, and how often it is wrong (no traffic)",
    "plan": "the sequential plan that keeps a goal's promises with the fewest trials (no traffic)",
    "fidelity": "published figures against those of the forwarding model (no traffic)",
    "why": "the limit that explanations of failures name against the one that binds in the model (no traffic)",
    "faults": "the verdicts of the acceptance procedure at each fault of the simulated bench",
    "overhead": "wall time of a trial less its duration, with the embedded server",
}

USAGE = "\n".join(
    [
        "Studies of the bench, each with --help:",
        *(f"  lineproof study {name:<14} {what}" for name, what in STUDIES.items()),
        "Studies of routers: lineproof study list",
    ]
)


def main(argv: list[str]) -> int:
    """Run one command; returns its exit status: 0 good, 1 a figure outside its bound. Raises LineproofError."""
    match argv:
        case ["serve", *rest]:
            module = "serve"
        case ["study", name, *rest] if name in STUDIES:
            module = f"studies.{name}"
        case ["study"] | ["study", "-h" | "--help", *_]:
            print(USAGE)
            return 0
        case _:
            print(f"lineproof: there is no '{' '.join(argv)}'\n\n{USAGE}", file=sys.stderr)
            return NOT_DONE
    # imported on demand: a study may need root, matplotlib or the TRex client
    result: int = importlib.import_module(f".{module}", __package__).main(rest)
    return result


if __name__ == "__main__":
    finish(lambda: main(sys.argv[1:]))
