"""The documentation of all keywords, as libdoc shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from robot.libdoc import libdoc

from lineproof.generators.abilities import Method
from lineproof.robot.sentence_check import METHODS
from lineproof.robot.suite_sentences import plain
from support.paths import ROOT

SOURCES: list[Path | str] = [*sorted((ROOT / "resources").glob("*.resource")), "lineproof.robot.Lineproof"]


def document(source: Path | str, folder: Path) -> dict[str, Any]:
    """libdoc's data, with documentation as HTML."""
    out = folder / "keywords.json"
    libdoc(str(source), str(out), quiet=True)
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def test_every_keyword_has_tags_and_an_example(tmp_path: Path) -> None:
    keywords = [item for source in SOURCES for item in document(source, tmp_path)["keywords"]]
    lacking = [item["name"] for item in keywords if not item["tags"] or "Example" not in item["doc"]]
    assert lacking == [] and len(keywords) > 40


def test_no_keyword_name_occurs_twice(tmp_path: Path) -> None:
    names = [item["name"] for source in SOURCES for item in document(source, tmp_path)["keywords"]]
    assert sorted(names) == sorted(set(names))


def test_every_method_that_a_generator_may_lack_has_its_keyword(tmp_path: Path) -> None:
    names = {plain(item["name"]) for source in SOURCES for item in document(source, tmp_path)["keywords"]}
    assert METHODS.keys() <= names and set(METHODS.values()) == set(Method)
