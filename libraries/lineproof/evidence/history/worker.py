"""A process that imports runs for another one: paths come in, what became of them goes out, as JSON lines.

It ends with its standard input. The store's address comes the same way, so that no list of processes shows it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

from ...errors import LineproofError
from .address import store_address
from .importing import import_one
from .store import HistoryStore


def main() -> None:
    """Answer every line of standard input."""
    lines = iter(sys.stdin.buffer)
    store: HistoryStore | None = None
    address = json.loads(next(lines))
    for line in lines:
        path, shown, overwrite = json.loads(line)
        try:
            if store is None:
                store = HistoryStore.open(store_address(address, Path()))
            answer = asdict(replace(import_one(store, Path(path), overwrite), path=shown))
        except LineproofError as error:
            answer = {"failed": str(error)}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
