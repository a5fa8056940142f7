"""What every picture shares: colours, size, title, the mark of a simulation, and SVG text that is always the same."""

from __future__ import annotations

import contextlib
import io
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .tables import SIMULATED

WAYS = ("#2c6fa6", "#59a3c9", "#7a68a6", "#a996c9")
LOST = "#d1382c"
INK = "#2b3540"
FAINT = "#8a95a0"
DEMAND = "#0d7a4f"
GRID = "#dde3e8"
_STYLE = {
    "svg.hashsalt": "linerate",
    # text stays text: it can be read, searched and copied
    "svg.fonttype": "none",
    "font.size": 10.5,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "hatch.linewidth": 0.7,
}


@dataclass
class Canvas:
    """A figure of about 900 x 420 pixels with one pair of axes; ``svg`` is there once the drawing is done."""

    figure: Any
    axes: Any
    svg: str = ""

    def legend(self, drawn: dict[str, Any]) -> None:
        """Words for what was drawn, below it."""
        if drawn:
            self.figure.legend(
                list(drawn.values()),
                list(drawn),
                loc="outside lower center",
                ncols=min(5, len(drawn)),
                frameon=False,
                fontsize=9.5,
                handlelength=1.2,
            )

    def plain(self, x: str, y: str) -> None:
        """Labels of both axes, and a grid behind what is drawn."""
        self.axes.set_xlabel(x)
        self.axes.set_ylabel(y)
        self.axes.grid(axis="both", color=GRID, linewidth=0.8, zorder=0)
        self.axes.set_axisbelow(True)
        self.axes.spines[["top", "right"]].set_visible(False)


@contextlib.contextmanager
def canvas(title: str, simulated: bool) -> Iterator[Canvas]:
    """A canvas to draw on; when the block ends, its ``svg`` holds the picture, marked where it is *simulated*."""
    # matplotlib takes long to import, and most of a run needs none of it
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(9.4, 4.5), layout="constrained")
        FigureCanvasSVG(figure)
        made = Canvas(figure, figure.add_subplot())
        yield made
        if simulated:
            _mark(made.axes)
            figure.suptitle(SIMULATED, x=0.995, ha="right", fontsize=9.5, color="#9a3a06", weight="bold")
        made.axes.set_title(textwrap.fill(title, 84), loc="left", fontsize=12, weight="bold", pad=10, parse_math=False)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": "linerate", "Title": title})
    made.svg = out.getvalue()


def _mark(axes: Any) -> None:
    axes.text(
        0.5,
        0.5,
        "SIMULATED",
        transform=axes.transAxes,
        ha="center",
        va="center",
        rotation=18,
        fontsize=62,
        color=FAINT,
        alpha=0.16,
        weight="bold",
        zorder=5,
    )


def unit(pps: float) -> tuple[str, float]:
    """The unit in which rates up to *pps* are drawn, and what it is in frames/s."""
    return ("Mpps", 1e6) if pps >= 1e6 else ("kpps", 1e3) if pps >= 1e3 else ("pps", 1.0)
