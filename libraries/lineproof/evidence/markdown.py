"""Text from elsewhere in GitHub's and GitLab's Markdown, and tables of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..visible import one_line

_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#~$])")


def markdown_text(words: object) -> str:
    """*words* in one line that shows as it is: no markup, link, mention or HTML."""
    line = one_line(words)
    # a name that looks like an address or somebody's account would become a link
    shown = _MARKUP.sub(r"\\\1", line.replace("&", "&amp;"))
    for link, inert in (("@", "&#64;"), ("://", ":&#47;/"), ("www.", "www&#46;")):
        shown = shown.replace(link, inert)
    return shown if shown[:1] not in ("-", "+", "=") else f"\\{shown}"  # would begin a list or a line


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table whose cells are Markdown already."""
    return [f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows)]
