"""A result as a table: HTML that stands alone or within another page and needs no script, or plain text."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from .tables import SIMULATED, STYLE


@dataclass(frozen=True, slots=True)
class Grid:
    """``columns``: names with their units (empty: none); ``rows``: their texts; ``notes``: what stands below.

    ``findings`` stand above the table, one to a line.
    """

    title: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    simulated: bool = False

    def page(self) -> str:
        """The table as an HTML page of its own: nothing from elsewhere, every word escaped."""
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(self.title)}</title>'
            "<style>body { margin: 0; background: #fff; }</style></head>\n<body>"
            f"{self.fragment()}</body></html>\n"
        )

    def fragment(self) -> str:
        """The same for use inside another page: its style touches nothing else there."""
        head = "".join(f"<th>{escape(name)}{_small(unit)}</th>" for name, unit in self.columns)
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
        """The same as plain text, for a console or a mail."""
        heads = [f"{name} [{unit}]" if unit else name for name, unit in self.columns]
        lines = [list(row) for row in self.rows]
        widths = [max(len(line[column]) for line in [heads, *lines]) for column in range(len(heads))]
        shown = [SIMULATED] if self.simulated else []
        shown += [self.title, *self.findings]
        for line in [heads, ["-" * width for width in widths], *lines]:
            shown.append("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        return "\n".join([*shown, *self.notes]) + "\n"


def _small(unit: str) -> str:
    return f"<small>{escape(unit)}</small>" if unit else ""
