"""The blocks of a page, and the commands in pages, examples and files of a new project, read as the program does."""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from lineproof.commands.main import COMMANDS, command_parser

_LINE = re.compile(r"^ *(?:- )?(?:run: )?(lineproof .+?)(?: *(?:&&|[>|#]).*)?$", re.MULTILINE)
"""``lineproof …`` at the beginning of a line, up to a sign of the shell."""


def blocks(language: str, text: str) -> Iterator[str]:
    """Yield the blocks of code of *text* in *language*, without the indentation of their list."""
    for indent, body in re.findall(rf"^( *)```{language}\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE):
        yield re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)


def shown_calls(file: Path) -> Iterator[Namespace]:
    """Yield what each command in *file* means: in a page's blocks of shell, in YAML also between backticks.

    Raises SystemExit for arguments that a command does not take.
    """
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        text = "".join(blocks("sh", text))
    for line in [*_LINE.findall(text), *re.findall("`(lineproof [^`]+)`", text)]:
        words = shlex.split(line)[1:]
        if words[0] in COMMANDS:
            yield command_parser(words[:1]).parse_args(words)
