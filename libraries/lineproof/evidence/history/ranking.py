"""The latest figures of own and foreign runs side by side, each with its label: text, CSV and SVG."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import ConfigError
from ...units import counted, si
from ...visible import shortened, visible
from ..csv_text import csv_table
from ..drawing import DIRECTION_COLOURS, GRID_COLOUR, PICTURE_STYLE, TEXT_COLOUR, matplotlib_style, rate_unit
from .stored_run import OWN, release_in_short
from .trends import day

COLUMNS = (
    *("origin", "simulated", "platform", "software", "testbed", "release", "goal", "sentence", "unit", "kind"),
    *("value", "low", "high", "observations", "verdict", "run", "percent_of_first"),
)
MOST_ROWS = 60
"""In a picture."""


def ranked(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows with a figure, the highest of each unit first, each in per cent of that one."""
    known = sorted((row for row in rows if row["value"] is not None), key=lambda row: (row["unit"], -row["value"]))
    first: dict[str, float] = {}
    found = []
    for row in known:
        most = first.setdefault(row["unit"], row["value"])
        share = 100 * row["value"] / most if most else None
        found.append({**row, "simulated": bool(row["simulated"]), "percent_of_first": share})
    return found


def document(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The rows as data for ``--json``."""
    return {"rows": [{name: row[name] for name in COLUMNS} for row in found]}


def label(row: Mapping[str, Any]) -> str:
    """``SIMULATED``, ``FOREIGN (netbenches)`` or nothing."""
    words = ["SIMULATED"] if row["simulated"] else []
    return ", ".join([*words, f"FOREIGN ({row['origin']})"] if row["origin"] != OWN else words)


def _name(row: Mapping[str, Any]) -> str:
    found = (*(str(row[name]) for name in ("platform", "software", "testbed")), release_in_short(row["release"]))
    known = dict.fromkeys(filter(None, found))
    return visible(f"{', '.join(known)}: {row['sentence']}").replace("\n", " ")


def _figure(row: Mapping[str, Any], value: float) -> str:
    return si(value, "pps") if row["unit"] == "pps" else f"{value:.4g} {row['unit']}"


def text(rows: Sequence[Mapping[str, Any]]) -> str:
    """A line for each row."""
    lines = []
    for row in rows:
        spread = ""
        if row["low"] is not None and row["high"] is not None:
            ends = dict.fromkeys((_figure(row, row["low"]), _figure(row, row["high"])))
            spread = f" ({' to '.join(ends)})" if len(ends) > 1 else ""
        share = "" if row["percent_of_first"] is None else f"{row['percent_of_first']:6.1f} %  "
        unbounded = row["kind"] == "capacity" and row["high"] is None
        least = "at least " if row["kind"] == "at least" or unbounded else ""
        marks = f"  [{label(row)}]" if label(row) else ""
        lines.append(f"{share}{least}{_figure(row, row['value'])}{spread}  {_name(row)}, {day(row['started'])}{marks}")
    lines.append(
        "Foreign figures were measured by others, in another way: nobody judged them, and nothing checks them."
    )
    return "\n".join(map(visible, lines))


def comma_separated(rows: Sequence[Mapping[str, Any]]) -> str:
    """RFC 4180; a text that a spreadsheet would take for a formula begins with an apostrophe."""
    return csv_table(COLUMNS, ([row[name] for name in COLUMNS] for row in rows))


def ranking_svg(rows: Sequence[Mapping[str, Any]]) -> str:
    """A line for each row with its figure and interval; own ones filled, foreign ones hollow, simulated ones crosses.

    Raises ConfigError for rows of several units, and for more than MOST_ROWS.
    """
    units = sorted({row["unit"] for row in rows})
    if len(units) > 1:
        raise ConfigError(f"a picture has one unit, these have {', '.join(units)}; choose with --sentence")
    if len(rows) > MOST_ROWS:
        raise ConfigError(
            f"{counted(len(rows), 'row')} are too many for a picture ({MOST_ROWS}); choose with --sentence"
        )
    with matplotlib_style(PICTURE_STYLE):
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9.4, 1.2 + 0.42 * len(rows)), layout="constrained")
        FigureCanvasSVG(figure)
        axes: Any = figure.add_subplot()
        most = max((row["value"] for row in rows), default=0.0)
        unit, size = rate_unit(most) if units == ["pps"] else ("".join(units), 1.0)
        for place, row in enumerate(rows):
            shape = "X" if row["simulated"] else "o"
            hollow = row["origin"] != OWN
            low, high = (row[name] if row[name] is not None else row["value"] for name in ("low", "high"))
            axes.errorbar(
                [row["value"] / size],
                [-place],
                xerr=[[max(0.0, row["value"] - low) / size], [max(0.0, high - row["value"]) / size]],
                fmt=shape,
                color=DIRECTION_COLOURS[0],
                markerfacecolor="white" if hollow else DIRECTION_COLOURS[0],
                markersize=7,
                capsize=3,
                zorder=3,
            )
        axes.set_yticks([-place for place in range(len(rows))])
        names = [f"{shortened(_name(row), 70)}{' – ' + label(row) if label(row) else ''}" for row in rows]
        axes.set_yticklabels(
            [textwrap.fill(name, 52) for name in names], fontsize=8, color=TEXT_COLOUR, parse_math=False
        )
        axes.set_xlim(left=0)
        axes.margins(y=0.5 / max(1, len(rows)))
        axes.set_xlabel(unit)
        axes.grid(axis="x", color=GRID_COLOUR, zorder=0)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title("filled: own, hollow: foreign, cross: simulated", loc="left", fontsize=9)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": "lineproof", "Title": "lineproof history"})
    return out.getvalue()
