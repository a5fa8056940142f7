"""docs/any-router.md: the walk-through works as it is written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lineproof.errors import ConfigError
from lineproof.project import Layers
from lineproof.routers.command_file import SIDE_WORDS, read_command_file
from lineproof.routers.queries import COUNTERS, UPTIME_UNITS
from support.paths import ROOT

PAGE = (ROOT / "docs" / "any-router.md").read_text(encoding="utf-8")
(EXAMPLE,) = (block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "shell: exampleos" in block)


def read(folder: Path, text: str) -> None:
    (folder / "variables" / "shells").mkdir(parents=True, exist_ok=True)
    (folder / "variables" / "shells" / "exampleos.yaml").write_text(text, encoding="utf-8")
    read_command_file(Layers(folder / "variables" / "shells", folder / "none"), "exampleos")


def test_the_example_is_right(tmp_path: Path) -> None:
    read(tmp_path, EXAMPLE)


def test_the_message_is_the_real_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, EXAMPLE.replace("273900", "273901"))
    (shown,) = re.findall(r"^variables/shells/exampleos\.yaml:.*", PAGE, re.MULTILINE)
    assert str(caught.value) == f"{tmp_path}/{shown}"


@pytest.mark.parametrize("word", [*SIDE_WORDS, *COUNTERS, *UPTIME_UNITS])
def test_every_word_is_explained(word: str) -> None:
    assert f"{{{word}}}" in PAGE if word in SIDE_WORDS else f"`{word}`" in PAGE
