"""Every platform has a suite of its own."""

from __future__ import annotations

from support import robot_run
from support.model_bench import PROJECT

SUITES = sorted((robot_run.ROOT / "tests").glob("*.robot"))


def test_every_platform_is_opened_by_a_suite() -> None:
    texts = [path.read_text(encoding="utf-8") for path in SUITES]
    for path in PROJECT.platforms.glob("*.yaml"):
        assert any(f"Open Testbed For    {path.stem}    " in text for text in texts), path.stem
