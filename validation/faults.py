"""The verdicts of the acceptance procedure at each fault of the simulated bench, as docs/faults.md shows them.

``tox -e matrix`` tries the same cases as tests.
"""

from __future__ import annotations

import argparse

from lineproof.commands.main import finish
from lineproof.project import Project
from support.faults import CASES, SENTENCES, row, run, table


def main() -> int:
    """Print the matrix; 0 when every outcome is the expected one, else 1."""
    parser = argparse.ArgumentParser(prog="python -m validation.faults", description=__doc__)
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/faults.md only")
    options = parser.parse_args()
    project, rows, good = Project.find(), [], True
    for case in CASES:
        outcomes = {}
        for quantity in SENTENCES:
            result = run(case, quantity, project)
            good &= (fine := result.as_expected(case, quantity))
            outcomes[quantity] = result.verdict.ruling.value
            if not options.markdown:
                mark = "" if fine else f"   NOT AS EXPECTED ({case.expected[quantity]})"
                print(f"{case.name}, {quantity}: {result.verdict.ruling.value}, {result.spoilt} spoilt{mark}")
                print(f"    {result.text}", flush=True)
        rows.append(row(case, outcomes))
    if options.markdown:
        print(table(rows))
    return 0 if good else 1


if __name__ == "__main__":
    finish(main)
