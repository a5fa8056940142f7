"""The commands that every simulated machine has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from .machine import Builtin, CommandLine, CommandOutput


def commands(files: Mapping[str, Callable[[CommandLine], str]]) -> dict[str, Builtin]:
    """``cat`` of *files*, and what needs no files."""

    def cat(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        if not arguments:
            return CommandOutput(line.stdin)
        out, err = "", ""
        for path in arguments:
            if path in files:
                out += files[path](line)
            elif path.startswith("/proc/sys/") and (key := path[10:].replace("/", ".")) in line.memory.sysctl:
                out += line.memory.sysctl[key] + "\n"
            else:
                err += f"cat: {path}: No such file or directory\n"
        return CommandOutput(out, err, 1 if err else 0)

    return {
        "cat": cat,
        "echo": lambda arguments, line: CommandOutput(_echo(arguments)),
        "exit": lambda arguments, line: CommandOutput("", "", int(arguments[0]) if "".join(arguments).isdigit() else 0),
        "hostname": lambda arguments, line: CommandOutput(line.state.hostname + "\n"),
        "date": _date,
        "grep": lambda arguments, line: _grep(arguments, line, files),
        "head": _head,
        "true": lambda arguments, line: CommandOutput(),
    }


def _echo(arguments: Sequence[str]) -> str:
    if arguments and arguments[0] == "-n":
        return " ".join(arguments[1:])
    return " ".join(arguments) + "\n"


def _date(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    if list(arguments) == ["+%s"]:
        return CommandOutput(f"{int(line.now)}\n")
    return CommandOutput("", "date: this simulated shell understands 'date +%s'\n", 1)


Files = Mapping[str, Callable[[CommandLine], str]]


def _grep_files(pattern: str, paths: Sequence[str], line: CommandLine, files: Files) -> CommandOutput:
    """``grep -sH``: rows of those *paths* that exist, each behind its path."""
    found = [
        f"{path}:{row}\n"
        for path in paths
        if path in files
        for row in files[path](line).splitlines()
        if re.search(pattern, row)
    ]
    return CommandOutput("".join(found), "", 0 if found else 2)


def _grep(arguments: Sequence[str], line: CommandLine, files: Files) -> CommandOutput:
    flags = "".join(word[1:] for word in arguments if word.startswith("-"))
    patterns = [word for word in arguments if not word.startswith("-")]
    if flags == "sH" and len(patterns) > 1:
        return _grep_files(patterns[0], patterns[1:], line, files)
    if len(patterns) != 1:
        return CommandOutput("", "grep: this simulated shell filters standard input, or files as 'grep -sH'\n", 2)
    text = re.escape(patterns[0]) if "F" in flags else patterns[0].replace("\\|", "|")
    try:
        pattern = re.compile(text, re.IGNORECASE if "i" in flags else 0)
    except re.error as error:
        return CommandOutput("", f"grep: {error}\n", 2)
    found = [row for row in line.stdin.splitlines(keepends=True) if bool(pattern.search(row)) != ("v" in flags)]
    return CommandOutput("".join(found), "", 0 if found else 1)


def _head(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    digits = re.sub(r"\D", "", " ".join(arguments))
    return CommandOutput("".join(line.stdin.splitlines(keepends=True)[: int(digits or 10)]))
