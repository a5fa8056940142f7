"""The documentation of all keywords, as libdoc shows it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
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


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: Path(str(source)).stem)
def test_nothing_is_taken_for_a_link(source: Path | str, tmp_path: Path) -> None:
    found = document(source, tmp_path)
    texts = [found["doc"], *(keyword["doc"] for keyword in found["keywords"])]
    links = [link for text in texts for link in re.findall(r'href="([^"]*)"', text)]
    assert [link for link in links if not re.match("#|https?://", link)] == []
    assert all("href" not in code for text in texts for code in re.findall("<code>(.*?)</code>|<pre>(.*?)</pre>", text))


def test_the_grammar_is_shown_as_it_is(tmp_path: Path) -> None:
    for source in (ROOT / "resources" / "acceptance.resource", "lineproof.robot.Lineproof"):
        plain = re.sub("<[^>]*>", "", document(source, tmp_path)["doc"]).replace("&gt;", ">").replace("&lt;", "<")
        assert "TRAFFIC DIRECTION [on N pairs] [QUANTITY] ≥ or ≤ VALUE UNIT [each way or in total]" in plain


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
