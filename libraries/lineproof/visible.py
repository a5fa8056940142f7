"""Text of routers, servers and files, made safe to show: in a terminal, a log, a message, XML."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

_UNUSUAL = re.compile(r"[^\t\n -~]")


def visible(text: str) -> str:
    r"""Return *text* with every control character as an escape: ``\x1b``, ``\r``, ``\u202e``; line feeds and tabs stay.

    Control characters are those of Unicode that are not printed (escape sequences, NUL, marks that change the direction
    of text, half surrogates, separators of lines): they could rewrite a terminal, mislead a reader or break XML.
    """
    return _UNUSUAL.sub(_escaped, text)


def one_line(text: object) -> str:
    """Return *text* in one line, as by :func:`visible`."""
    return " ".join(visible(str(text)).split())


def visible_data(data: Any) -> Any:
    """Return *data* as of JSON with every text in it, and every key of a mapping, as by :func:`visible`."""
    if isinstance(data, str):
        return visible(data)
    if isinstance(data, dict):
        return {visible_data(key): visible_data(value) for key, value in data.items()}
    return [visible_data(value) for value in data] if isinstance(data, list | tuple) else data


def shortened(text: object, most: int = 160) -> str:
    """Return *text*, which somebody else wrote, for a message: in one line, what does not print escaped.

    Of more than *most* characters both ends are kept: where it begins, and what the sentence about it ends with.
    """
    whole = str(text)
    if len(whole) > most:
        whole = f"{whole[: most - most // 3]} … {whole[-(most // 3) :]}"
    if whole.isprintable():
        return whole
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in whole)


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    return character.encode("unicode_escape").decode("ascii")
