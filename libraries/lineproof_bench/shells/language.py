"""The part of the POSIX shell's language that the simulated shells understand.

Simple commands with quotes, ``;`` ``&&`` ``||`` ``|``, ``$?``, ``2>&1``, and output sent to a file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

STATUS_MARK = "\0"
"""Stands for ``$?`` in a word until the command is run."""

UNEXPECTED_END = "Syntax error: end of file unexpected"

_OPERATOR = re.compile(r"&&|\|\||[;|\n]")
_REDIRECT = re.compile(r"(?P<which>&|[12])?>(?P<append>>)?[ \t]*(?P<merge>&1)?")
_VARIABLE = re.compile(r"\$(?P<name>\?|[A-Za-z_]\w*)")


class SyntaxIssue(ValueError):
    """The line is not in the language; the text is a shell's message."""


@dataclass(slots=True)
class ShellCommand:
    """One simple command. ``stdout``: file it is sent to; ``stderr``: True as it is, False dropped; ``merge``: 2>&1."""

    words: list[str]
    stdout: str | None = None
    stderr: bool = True
    merge: bool = False


@dataclass(slots=True)
class Pipeline:
    """Commands joined by ``|``, run when *condition* (``;`` always, ``&&``, ``||``) holds for the one before."""

    condition: str
    commands: list[ShellCommand]


def parse(line: str) -> list[Pipeline]:
    """*line* as pipelines in order. Raises SyntaxIssue."""
    pipelines: list[Pipeline] = []
    condition, commands, command = ";", list[ShellCommand](), ShellCommand([])
    at = 0
    while at <= len(line):
        rest = line[at:]
        operator = _OPERATOR.match(rest)
        redirect = _REDIRECT.match(rest)
        if operator or not rest:
            sign = operator[0] if operator else ";"
            at += len(sign)
            if not command.words and (sign in ("|", "&&", "||") or commands or condition != ";"):
                raise SyntaxIssue(f'Syntax error: "{sign}" unexpected' if rest else UNEXPECTED_END)
            if command.words:
                commands.append(command)
            command = ShellCommand([])
            if sign == "|":
                continue
            if commands:
                pipelines.append(Pipeline(condition, commands))
            condition, commands = (sign if sign in ("&&", "||") else ";"), []
        elif rest[0] in " \t":
            at += 1
        elif rest[0] == "#":
            at += len(rest.split("\n", 1)[0])
        elif redirect:
            at += redirect.end()
            at = _redirect(command, redirect, line, at)
        elif rest[0] in "&()<`":
            raise SyntaxIssue(f'Syntax error: "{rest[0]}" is more than this simulated shell understands')
        else:
            word, at = _word(line, at)
            command.words.append(word)
    return pipelines


def _redirect(command: ShellCommand, redirect: re.Match[str], line: str, at: int) -> int:
    if redirect["merge"]:
        command.merge = redirect["which"] == "2"
        return at
    target, at = _word(line, at)
    if not target:
        raise SyntaxIssue("Syntax error: redirection without a file")
    if redirect["which"] in ("2", "&"):
        command.stderr = False
    if redirect["which"] != "2":
        command.stdout = target
    return at


def _word(line: str, at: int) -> tuple[str, int]:
    text: list[str] = []
    while at < len(line) and line[at] not in " \t\n;|&<>()":
        sign = line[at]
        if sign == "'":
            end = line.find("'", at + 1)
            if end < 0:
                raise SyntaxIssue("Syntax error: Unterminated quoted string")
            text.append(line[at + 1 : end])
            at = end + 1
        elif sign == '"':
            part, at = _double_quoted(line, at + 1)
            text.append(part)
        elif sign == "\\":
            text.append(line[at + 1 : at + 2])
            at += 2
        elif sign == "`" or line.startswith("$(", at):
            raise SyntaxIssue("Syntax error: command substitution is more than this simulated shell understands")
        elif found := _VARIABLE.match(line, at):
            text.append(STATUS_MARK if found["name"] == "?" else "")
            at = found.end()
        else:
            text.append(sign)
            at += 1
    return "".join(text), at


def _double_quoted(line: str, at: int) -> tuple[str, int]:
    text: list[str] = []
    while at < len(line) and line[at] != '"':
        if line[at] == "\\" and line[at + 1 : at + 2] in ('"', "\\", "$", "`"):
            text.append(line[at + 1])
            at += 2
        elif line[at] == "`" or line.startswith("$(", at):
            raise SyntaxIssue("Syntax error: command substitution is more than this simulated shell understands")
        elif found := _VARIABLE.match(line, at):
            text.append(STATUS_MARK if found["name"] == "?" else "")
            at = found.end()
        else:
            text.append(line[at])
            at += 1
    if at >= len(line):
        raise SyntaxIssue("Syntax error: Unterminated quoted string")
    return "".join(text), at + 1
