"""A capture by a generator that keeps no frames proves nothing: it is no failure of the router, and no error."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lineproof.errors import Inconclusive
from lineproof.project import Project
from lineproof.robot.shared import Shared
from lineproof.robot.traffic_generator import GeneratorKeywords
from lineproof.session.plan import Plan
from support.paths import ROOT


def test_a_generator_that_keeps_no_frames_is_inconclusive() -> None:
    plan = Plan.read(Project(ROOT), "linux_router", None, "netns-trafgen", "quick")
    shared: Any = Shared()
    shared.opened.append(("suite", SimpleNamespace(plan=plan)))
    with pytest.raises(Inconclusive) as raised:
        GeneratorKeywords(shared).capture_forwarded_frames("64b", 1000)
    words = str(raised.value)
    assert words.startswith("INCONCLUSIVE: a capture of '64b': the generator 'trafgen' keeps no received")
