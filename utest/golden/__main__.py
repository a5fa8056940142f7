"""Compare what the program says with ``utest/golden/data``, or write it there: ``python -m utest.golden --update``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "libraries"), str(ROOT / "utest")]


def main() -> int:
    """Print each changed row. Return 1 if one differs and is not updated."""
    from golden import net

    parser = argparse.ArgumentParser(prog="python -m utest.golden", description=__doc__)
    parser.add_argument("--update", action="store_true", help="write what the program says now")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"all if none is named: {', '.join(net.NAMES)}")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(net.NAMES):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(net.NAMES)}")
    changed = 0
    for part in asked.parts or net.NAMES:
        now = net.texts(part)
        rows = net.changes(part, now)
        changed += len(rows)
        print("\n".join([*rows[:200], f"{part}: {len(rows)} rows"]) if rows else f"{part}: equal", flush=True)
        if asked.update:
            net.write(part, now)
    return 1 if changed and not asked.update else 0


if __name__ == "__main__":
    sys.exit(main())
