"""Curves as SVG text, the same for the same figures."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lineproof.evidence.drawing import matplotlib_style
from lineproof.sla.sequential_plan import SequentialPlan

_COLOURS = {
    "`quick`": "#59a3c9",
    "`standard`": "#0d5c9c",
    "`rfc2544`": "#123a5c",
    "bisection, 30 s": "#d1382c",
    "MLRsearch at the SLA": "#c98a1b",
    "TRex ndr_bench": "#7a68a6",
}
_OTHER = "#3f8f6b"
_PASS, _FAIL, _CONTINUE = "PASS", "FAIL", "one more trial"
_REGIONS = {_PASS: "#0d5c9c", _CONTINUE: "#dde3e8", _FAIL: "#d1382c"}
_INK, _FAINT = "#2b3540", "#8a95a0"
_STYLE = {
    "svg.hashsalt": "lineproof",
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


def write_plots(folder: Path | None, figures: Mapping[str, str]) -> None:
    """Write *figures* into *folder*, if there is one."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, svg in figures.items():
        (folder / name).write_text(svg, encoding="utf-8")


def curves_plot(
    curves: Sequence[Curve],
    title: str,
    x_label: str,
    y_label: str,
    marks: Sequence[float] = (),
    logarithmic: str = "",
) -> str:
    """An SVG of about 900 x 420 pixels. *marks*: values of x to rule a line at; *logarithmic*: ``x`` or ``y``."""
    with matplotlib_style(_STYLE):
        # matplotlib takes long to import, and the tables need none of it
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter

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
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": "lineproof", "Title": title})
    return out.getvalue()


def plans_plot(plans: Mapping[str, SequentialPlan]) -> str:
    """An SVG with a panel for each of *plans*: which numbers of good and bad trials are a PASS, a FAIL or neither."""
    title = "Sequential plans"
    with matplotlib_style(_STYLE):
        # as above
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch

        figure = Figure(figsize=(9.4, 1.0 + 2.6 * len(plans)), layout="constrained")
        FigureCanvasSVG(figure)
        panels = figure.subplots(len(plans), squeeze=False, sharex=True)
        most = max(max(plan.good_for_pass) for plan in plans.values()) + 2
        for (name, plan), axes in zip(plans.items(), panels[:, 0], strict=True):
            for bad in range(plan.most_bad + 2):
                regions = [
                    _PASS if plan.passes(good, bad) else _FAIL if plan.fails(good, bad) else _CONTINUE
                    for good in range(most + 1)
                ]
                for region, colour in _REGIONS.items():
                    if number := regions.count(region):
                        # more good trials never make it worse, so each region is one bar
                        axes.broken_barh([(regions.index(region) - 0.5, number)], (bad - 0.45, 0.9), color=colour)
            axes.set_xlim(-0.6, most + 0.6)
            axes.set_ylabel("bad trials")
            axes.set_yticks(range(plan.most_bad + 2))
            axes.set_title(name, loc="left", fontsize=12, weight="bold")
            axes.spines[["top", "right"]].set_visible(False)
        panels[-1, 0].set_xlabel("good trials")
        panels[-1, 0].set_xticks(range(0, most + 1, 2))
        figure.legend(
            handles=[Patch(color=colour, label=region) for region, colour in _REGIONS.items()],
            loc="outside right upper",
            frameon=False,
        )
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": "lineproof", "Title": title})
    return out.getvalue()
