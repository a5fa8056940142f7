"""What pictures share: colours; and for those of characterisations, matplotlib's: size, title, mark of a simulation."""

from __future__ import annotations

import contextlib
import io
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..system.children import absolute_path_only
from .tables import SIMULATED

DIRECTION_COLOURS = ("#2c6fa6", "#59a3c9", "#7a68a6", "#a996c9")
LOST_COLOUR = "#d1382c"
TEXT_COLOUR = "#2b3540"
FAINT_COLOUR = "#8a95a0"
THRESHOLD_COLOUR = "#0d7a4f"
GRID_COLOUR = "#dde3e8"
SIMULATED_COLOUR = "#9a3a06"
LINE_STYLES = ("-", "--", ":", "-.")
"""Of lines that differ in colour too: no reader needs the colours."""
HATCHES = ("///", "\\\\\\", "---", "xxx")
"""matplotlib's, of areas beside these lines."""
MARKS = "osD^vPX"
"""matplotlib's, of curves that differ in colour too."""
PICTURE_STYLE = {
    "svg.hashsalt": "lineproof",
    # text stays text: it can be read, searched and copied
    "svg.fonttype": "none",
    "font.size": 10.5,
    "axes.edgecolor": FAINT_COLOUR,
    "axes.labelcolor": TEXT_COLOUR,
    "text.color": TEXT_COLOUR,
    "xtick.color": TEXT_COLOUR,
    "ytick.color": TEXT_COLOUR,
    "hatch.linewidth": 0.7,
}


@dataclass
class Drawing:
    """A figure of about 900 x 420 pixels with one pair of axes; ``svg`` is set when the drawing is finished."""

    figure: Any
    axes: Any
    svg: str = ""

    def legend(self, drawn: dict[str, Any]) -> None:
        """A legend below the axes: label -> artist."""
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

    def label_axes(self, x: str, y: str) -> None:
        """Label both axes and add a grid."""
        self.axes.set_xlabel(x)
        self.axes.set_ylabel(y)
        self.axes.grid(axis="both", color=GRID_COLOUR, linewidth=0.8, zorder=0)
        self.axes.set_axisbelow(True)
        self.axes.spines[["top", "right"]].set_visible(False)


@contextlib.contextmanager
def matplotlib_style(style: Mapping[str, Any]) -> Iterator[None]:
    """matplotlib's own settings and *style*, whatever a ``matplotlibrc`` of the current folder or the user says."""
    with absolute_path_only():
        # imported here: matplotlib takes long to import, and most commands do not need it
        import matplotlib.font_manager  # which may run fc-list
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(style)
        yield


@contextlib.contextmanager
def drawing(title: str, simulated: bool) -> Iterator[Drawing]:
    """A figure to draw on; when the block ends, its ``svg`` holds the picture, marked if *simulated*."""
    with matplotlib_style(PICTURE_STYLE):
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9.4, 4.5), layout="constrained")
        FigureCanvasSVG(figure)
        picture = Drawing(figure, figure.add_subplot())
        yield picture
        if simulated:
            _draw_simulated_mark(picture.axes)
            figure.suptitle(SIMULATED, x=0.995, ha="right", fontsize=9.5, color=SIMULATED_COLOUR, weight="bold")
        picture.axes.set_title(
            textwrap.fill(title, 84), loc="left", fontsize=12, weight="bold", pad=10, parse_math=False
        )
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": "lineproof", "Title": title})
    picture.svg = out.getvalue()


def _draw_simulated_mark(axes: Any) -> None:
    axes.text(
        0.5,
        0.5,
        "SIMULATED",
        transform=axes.transAxes,
        ha="center",
        va="center",
        rotation=18,
        fontsize=62,
        color=FAINT_COLOUR,
        alpha=0.16,
        weight="bold",
        zorder=5,
    )


def rate_unit(pps: float) -> tuple[str, float]:
    """The unit for rates up to *pps*, and its size in frames/s."""
    return ("Mpps", 1e6) if pps >= 1e6 else ("kpps", 1e3) if pps >= 1e3 else ("pps", 1.0)
