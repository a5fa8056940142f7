"""The commands that every simulated machine has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from .machine import Builtin, CommandLine, CommandOutput

Files = Mapping[str, Callable[[CommandLine], str]]


def no_other(path: str, line: CommandLine) -> None:
    """Return no text: there is no such file."""


def commands(files: Files, other: Callable[[str, CommandLine], str | None] = no_other) -> dict[str, Builtin]:
    """``cat`` and ``grep`` of *files* and of those that *other* has, and what needs no files."""

    def text_of(path: str, line: CommandLine) -> str | None:
        if path in files:
            return files[path](line)
        return line.memory.sysctl.get(path[10:].replace("/", "."), other(path, line))

    def cat(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        out, err = "", ""
        for path in arguments:
            text = text_of(path, line)
            out += text or ""
            err += f"cat: {path}: No such file or directory\n" if text is None else ""
        return CommandOutput(out, err, 1 if err else 0)

    def grep(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        """``-H`` and ``-r`` with ``--include`` of the last part of a path."""
        flags = "".join(word for word in arguments if re.fullmatch(r"-\w+", word))
        included = [word.partition("=")[2] for word in arguments if word.startswith("--include=")]
        pattern, *paths = [word for word in arguments if not word.startswith("-")]
        if "r" in flags:
            below = [path for path in files if path.startswith(tuple(f"{folder}/" for folder in paths))]
            paths = [path for path in below if not included or path.rpartition("/")[2] in included]
        texts = {path: text_of(path, line) for path in paths}
        rows = ((path, row) for path, text in texts.items() for row in (text or "").splitlines())
        found = "".join(
            f"{path}:{row}\n" if "H" in flags else f"{row}\n" for path, row in rows if re.search(pattern, row)
        )
        return CommandOutput(found, "", 2 if not texts or None in texts.values() else 0 if found else 1)

    return {
        "cat": cat,
        "grep": grep,
        "date": lambda arguments, line: CommandOutput(f"{int(line.now)}\n"),
        "hostname": lambda arguments, line: CommandOutput(f"{line.state.hostname}\n"),
        "true": lambda arguments, line: CommandOutput(),
    }
