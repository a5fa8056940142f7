"""Curves as SVG text, the same for the same figures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

_COLOURS = {
    "`quick`": "#59a3c9",
    "`standard`": "#0d5c9c",
    "`rfc2544`": "#123a5c",
    "bisection, 30 s": "#d1382c",
    "MLRsearch, CSIT's NDR": "#c98a1b",
    "MLRsearch, up to the SLA": "#8a6d1f",
    "TRex ndr_bench": "#7a68a6",
}
_OTHER = "#3f8f6b"
_INK, _FAINT = "#2b3540", "#8a95a0"
_STYLE = {
    "svg.hashsalt": "linerate",
    # text stays text: it can be read, searched and copied
    "svg.fonttype": "none",
    "font.size": 10.5,
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}


@dataclass(frozen=True, slots=True)
class Curve:
    """A name and its points."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


def curves_plot(
    curves: Sequence[Curve],
    title: str,
    x_label: str,
    y_label: str,
    marks: Sequence[float] = (),
    logarithmic: str = "",
) -> str:
    """An SVG of about 900 x 420 pixels. *marks*: values of x to rule a line at; *logarithmic*: ``x`` or ``y``."""
    # matplotlib takes long to import, and the tables need none of it
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(9.4, 4.5), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        # the project's own rules come first, thicker
        for curve in curves:
            ours = curve.name.startswith("`")
            axes.plot(
                curve.x,
                curve.y,
                color=_COLOURS.get(curve.name, _OTHER),
                label=curve.name.replace("`", ""),
                linewidth=2.2 if ours else 1.4,
                linestyle="-" if ours else "--",
                marker="o",
                markersize=3.5,
            )
        for mark in marks:
            axes.axvline(mark, color=_FAINT, linewidth=1, linestyle=":")
        if "x" in logarithmic:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        if "y" in logarithmic:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.set_title(title, loc="left", fontsize=12, weight="bold")
        axes.grid(color="#dde3e8", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside right upper", frameon=False)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": "linerate", "Title": title})
    return out.getvalue()
