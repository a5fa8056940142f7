"""The commands that a page, an example or a file of a new project shows, read as the program reads them."""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from lineproof.commands.main import COMMANDS, command_parser

_LINE = re.compile(r"^ *(?:- )?(?:run: )?(lineproof .+?)(?: *(?:&&|[>|#]).*)?$", re.MULTILINE)
"""``lineproof …`` at the beginning of a line, up to a sign of the shell."""


def shown_calls(file: Path) -> Iterator[Namespace]:
    """Yield what each command in *file* means: in a page's blocks of shell, in YAML also between backticks.

    Raises SystemExit for arguments that a command does not take.
    """
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        text = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    for line in [*_LINE.findall(text), *re.findall("`(lineproof [^`]+)`", text)]:
        words = shlex.split(line)[1:]
        if words[0] in COMMANDS:
            yield command_parser(words[:1]).parse_args(words)
