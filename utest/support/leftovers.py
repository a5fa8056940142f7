"""What a run left on this machine, and nothing that other runs have there at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lineproof.testbed import namespaces


@contextmanager
def tags_of(runtime: Path) -> Iterator[set[str]]:
    """The tags of the testbeds that are leased in *runtime* meanwhile, looked at every 20 ms."""
    tags: set[str] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.02):
            tags.update(path.stem for path in runtime.glob("lineproof/*.lease"))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield tags
    finally:
        ended.set()
        thread.join()


def namespaces_of(tags: set[str]) -> set[str]:
    """The network namespaces of the testbeds *tags* that exist."""
    return {name for tag in tags for name in namespaces.existing_namespaces(tag)}
