"""The part of the POSIX shell's language that the simulated shells understand: quotes, ``;``, ``|`` and ``$?``."""

from __future__ import annotations

import re

STATUS_MARK = "\0"
"""Stands for ``$?`` in a word until the command is run."""

_TOKEN = re.compile(
    r"""[ \t]+|\#[^\n]*|(?P<sign>[;|\n])|(?P<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s;|&<>()'"\\`])+)""", re.DOTALL
)
_QUOTES = re.compile(
    r"""'(?P<single>[^']*)'|"(?P<double>(?:\\.|[^"\\])*)"|\\(?P<escaped>.)|(?P<status>\$\?)""", re.DOTALL
)
_IN_DOUBLE = re.compile(r'\\(["\\$`])|\$\?')


class SyntaxIssue(ValueError):
    """The line is not in the language; the text is a shell's message."""


def parse(line: str) -> list[list[list[str]]]:
    """*line* as pipelines in order, each a list of commands of words. Raises SyntaxIssue."""
    pipelines, commands, words = list[list[list[str]]](), list[list[str]](), list[str]()
    line, at = f"{line}\n;", 0
    while at < len(line):
        token = _TOKEN.match(line, at)
        if token is None:
            raise SyntaxIssue(
                f'Syntax error: "{line[at]}" is not closed, or more than this simulated shell understands'
            )
        at, sign = token.end(), token["sign"]
        if token["word"]:
            words.append(_QUOTES.sub(_unquoted, token["word"]))
        elif sign:
            if words:
                commands.append(words)
            elif commands or sign == "|":
                raise SyntaxIssue("Syntax error: a command is missing before or after '|'")
            words = []
            if commands and sign != "|":
                pipelines.append(commands)
                commands = []
    return pipelines


def _unquoted(part: re.Match[str]) -> str:
    if part["status"]:
        return STATUS_MARK
    if part["double"] is not None:
        return _IN_DOUBLE.sub(lambda inner: inner[1] or STATUS_MARK, part["double"])
    return part["single"] or part["escaped"] or ""
