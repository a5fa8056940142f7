"""``python -m validation.faults``: prints what becomes of three sentences in the cases that ``tox -e matrix`` tries."""

from __future__ import annotations

import yaml

from lineproof.core.trial import Fault
from support.paths import DATA

QUANTITIES = ("throughput", "forwards", "latency")
HEAD = ("fault", "what happens", *QUANTITIES, "cause named")


def main() -> None:
    """Print a row for each case."""
    print("\n".join("| " + " | ".join(row) + " |" for row in (HEAD, ("---",) * len(HEAD))))
    for case in yaml.safe_load((DATA / "fault_cases.yaml").read_text(encoding="utf-8")):
        expected = [case.get("others", {}).get(quantity, case["expected"]) for quantity in QUANTITIES]
        words = {word for _, cause in expected for word in cause.split("|") if word}
        causes = sorted(Fault[word].value if word in Fault.__members__ else word for word in words)
        named = " or ".join(f"“{cause}”" for cause in causes) or "none"
        print("| " + " | ".join((case["name"], case["about"], *(ruling for ruling, _ in expected), named)) + " |")


if __name__ == "__main__":
    main()
