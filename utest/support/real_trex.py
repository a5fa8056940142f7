"""A real TRex, if TREX_HOME names an installation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lineproof.errors import TestbedError
from lineproof.generators.trex.driver import TrexGenerator
from lineproof.testbed.netns import home_of_trex


def missing() -> str:
    """Return why no real TRex can run here; "" if it can."""
    try:
        home_of_trex()
    except TestbedError as error:
        return str(error)
    return ""


REASON = missing()
WORDS = ("linux_router", "linux", "netns-trex")
"""Platform, software and testbed of a session with it."""


def generator(testbed: object, **more: Any) -> TrexGenerator:
    assert hasattr(testbed, "facts")
    return TrexGenerator(replace(testbed.facts.generator.trex, **{"next_hops": {}, **more}))
