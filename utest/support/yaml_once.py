"""Each YAML file is parsed once in a process of the tests and in those forked from it: they read the same forty always.

PyYAML takes half of the CPU of a plan that is read, and of a Robot run that is refused.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from lineproof import config
from support.paths import VARIABLES


def install() -> None:
    """For the rest of this process. What is refused is parsed again, and every caller gets data of its own."""
    parse, known = config.parse_yaml, dict[str, bytes]()

    def parsed(text: str, path: Path) -> Any:
        if text not in known:
            if len(known) > 500:  # fuzzed files
                known.clear()
            known[text] = pickle.dumps(parse(text, path))
        return pickle.loads(known[text])

    config.parse_yaml = parsed


def read_all() -> None:
    """Parse what Lineproof ships, for the processes that are forked from this one."""
    for path in VARIABLES.rglob("*.yaml"):
        config.read_yaml(path)
