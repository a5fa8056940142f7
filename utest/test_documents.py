"""Documents tell the truth: their links, the files of the walk-through, the sentences of the README."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lineproof.core.sentence import is_sentence
from lineproof.project import Project
from lineproof.session.plan import Plan
from lineproof.testbed.settings import read_testbed
from support.paths import ROOT
from support.shown_commands import blocks, shown_calls

PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += [*(ROOT / "docs").rglob("*.md"), *(ROOT / "validation").glob("*.md")]


def anchors(page: Path) -> set[str]:
    """Return what a link may name after its '#': each heading in small letters, with hyphens, without signs."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"https?:|mailto:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), target
        # whoever has installed a wheel has the pages, and no tree around them
        assert "docs" not in page.parts or "docs" in file.parts or file.suffix == ".md", target
        assert not anchor or anchor in anchors(file), target


def test_no_table_has_an_escaped_pipe_which_the_site_would_show_with_its_backslash() -> None:
    assert [page.name for page in PAGES if r"\|" in page.read_text(encoding="utf-8")] == []


def test_every_page_of_the_documentation_is_in_its_list() -> None:
    listed = set(re.findall(r"\]\(([\w/-]+\.md)", (ROOT / "docs" / "README.md").read_text(encoding="utf-8")))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert pages - listed == {"README.md"}


@pytest.mark.parametrize("page", [*PAGES, *(ROOT / "docs" / "ci").iterdir()], ids=lambda page: page.name)
def test_commands_that_pages_show_are_ours(page: Path) -> None:
    assert all(call.command for call in shown_calls(page))


FOLDERS = ("libraries", "resources", "tests", "utest", "validation", "variables")
NAMING = {".py", ".yaml", ".resource", ".robot", ".txt"}


def test_pages_that_files_name_exist() -> None:
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in NAMING]
    named = {
        page
        for path in files
        for page in re.findall(
            r"\bdocs/(?:methodology/)?[\w-]+\.md", path.read_text(encoding="utf-8", errors="replace")
        )
    }
    assert {page for page in named if not (ROOT / page).exists()} == set()


def test_files_that_pages_for_developers_name_exist() -> None:
    pages = [ROOT / "docs" / name for name in ("architecture.md", "extending.md")]
    named = {
        file for page in pages for file in re.findall(r"`([\w.]+/[\w./]+\.\w+)`", page.read_text(encoding="utf-8"))
    }
    folders = (ROOT, ROOT / "libraries", ROOT / "libraries" / "lineproof")
    assert {file for file in named if not any((folder / file).exists() for folder in folders)} == set()


# -- the walk-through's made-up box, and the README: all that they show of files and sentences is true


SHOWN = ("variables/platforms/examplebox.yaml", "variables/testbeds/examplebox.yaml", "tests/examplebox.robot")


def test_the_walk_through_shows_the_files_of_the_tree() -> None:
    walk = (ROOT / "docs" / "adding-a-platform.md").read_text(encoding="utf-8")
    # a file begins with a comment, and what is only a part of one does not
    files = [text for text in blocks("yaml", walk) if text.startswith("# ")]
    files += blocks("robotframework", walk)
    assert files == [(ROOT / name).read_text(encoding="utf-8") for name in SHOWN]


def test_the_sentences_at_the_top_of_the_readme() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(page.split()) <= 500
    plan = Plan.read(Project.find(ROOT), "netgate6100", "vpp", "simulated", "standard")
    shown = [line.strip() for line in next(blocks("robotframework", page)).splitlines() if is_sentence(line.strip())]
    assert len(shown) == 3
    for sentence in shown:
        plan.requirement(sentence)


def test_the_rehearsal_on_a_real_kernel_names_a_testbed_that_is_one(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "first-hardware-run.md").read_text(encoding="utf-8")
    (text,) = (text for text in blocks("yaml", page) if text.startswith("testbed: rehearsal"))
    (tmp_path / "rehearsal.yaml").write_text(text, encoding="utf-8")
    assert read_testbed(tmp_path, "rehearsal").prepare == "configure"
