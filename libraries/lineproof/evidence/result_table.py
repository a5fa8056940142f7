"""A result as a table: an HTML page, HTML for use within another page (both without scripts), or plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from .tables import SIMULATED, STYLE, html_page


@dataclass(frozen=True, slots=True)
class ResultTable:
    """``columns``: names and units ("": none); ``rows``: the cells; ``findings`` above the table, ``notes`` below."""

    title: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    simulated: bool = False

    def page(self) -> str:
        """The table as an HTML page without external resources; all text is escaped."""
        return html_page(self.title, self.fragment())

    def fragment(self) -> str:
        """The table for use inside another page; its style applies to itself only."""
        head = "".join(f"<th>{escape(name)}{_unit_html(unit)}</th>" for name, unit in self.columns)
        body = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows)
        marked = f'<div class="simulated">{SIMULATED}</div>' if self.simulated else ""
        above = "".join(f"<p>{escape(finding)}</p>" for finding in self.findings)
        below = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return (
            f'<style>{STYLE}</style><div class="lr-trials">{marked}<h1>{escape(self.title)}</h1>{above}\n'
            f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>\n'
            f"{below}</div>"
        )

    def text(self) -> str:
        """The table as plain text, for a console or a mail."""
        heads = [f"{name} [{unit}]" if unit else name for name, unit in self.columns]
        dashes = ["-" * max(map(len, column)) for column in zip(heads, *self.rows, strict=True)]
        shown = [SIMULATED] if self.simulated else []
        shown += [self.title, *self.findings, *text_columns([heads, dashes, *self.rows])]
        return "\n".join([*shown, *self.notes]) + "\n"


def text_columns(table: Sequence[Sequence[str]]) -> list[str]:
    """*table* with columns as wide as their words, which end at one place."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(f"{word:>{widths[place]}}" for place, word in enumerate(line)).rstrip() for line in table]


def _unit_html(unit: str) -> str:
    return f"<small>{escape(unit)}</small>" if unit else ""
