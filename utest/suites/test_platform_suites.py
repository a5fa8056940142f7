"""Every platform has a suite of its own, and the simulated one keeps what the suite promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import robot_run
from support.model_bench import PROJECT

SUITES = sorted((robot_run.ROOT / "tests").glob("*.robot"))
SHORT = [path for path in SUITES if path.stem.startswith("freebsd_") or path.stem == "gowin_n305"]


def test_every_platform_is_opened_by_a_suite() -> None:
    texts = [path.read_text(encoding="utf-8") for path in SUITES]
    for path in PROJECT.platforms.glob("*.yaml"):
        assert any(f"Open Testbed For    {path.stem}    " in text for text in texts), path.stem


@pytest.mark.slow
@pytest.mark.parametrize("suite", SHORT, ids=lambda path: path.stem)
def test_a_simulated_box_keeps_its_published_figures(suite: Path, tmp_path: Path) -> None:
    found = robot_run.run(tmp_path, suite)
    assert found.status == 0, found.console
