"""``python -m lineproof_bench.model.check FILE …``: what is wrong with the ``model:`` of platforms, a line each."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from lineproof.commands.main import finish
from lineproof.errors import ConfigError

from .schema import load_platform, router_model


def main(argv: Sequence[str]) -> int:
    """Print each problem with file and line; return 0."""
    for problem in dict.fromkeys(problem for path in map(Path, argv) for problem in problems(path)):
        print(problem)
    return 0


def problems(path: Path) -> Iterator[str]:
    """Yield the problem of each software; a platform without ``model:``, or that cannot be read, has none here."""
    try:
        platform = load_platform(path)
    except ConfigError:
        return
    modelled = platform.model.get("software")
    named = modelled if isinstance(modelled, dict) else platform.software
    for software in platform.software if platform.model else ():
        if software in named:
            try:
                router_model(platform, software, path=path)
            except ConfigError as error:
                yield str(error)


if __name__ == "__main__":
    finish(lambda: main(sys.argv[1:]))
