"""Pieces of the sheet's HTML, in which text from elsewhere is escaped, and its style."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from ...visible import one_line
from ..svg import svg_image

BLANK = '<span class="blank"></span>'
"""To fill in by hand."""


def facts_table(pairs: Iterable[tuple[str, object]]) -> str:
    """Names and what is known of each."""
    return table([(text(name), f'<span class="mono">{text(words)}</span>') for name, words in pairs])


def table(
    rows: Sequence[Sequence[str]],
    heads: Sequence[str] = (),
    widths: Sequence[int] = (40,),
    fixed: str = "",
    kind: str = "",
) -> str:
    """Cells of HTML. *widths* of the first columns in mm; *fixed*: rows that are made already. *kind*: its class."""
    columns = "".join(f'<col style="width: {width}mm">' if width else "<col>" for width in widths)
    head = f"<thead><tr>{''.join(f'<th>{name}</th>' for name in heads)}</tr></thead>" if heads else ""
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    named = f' class="{kind}"' if kind else ""
    return f"<table{named}><colgroup>{columns}</colgroup>{head}<tbody>{body}{fixed}</tbody></table>\n"


def picture(name: str, svg: str) -> str:
    """An SVG picture within the page."""
    return svg_image(one_line(name), svg)


def text(words: object) -> str:
    """Text from elsewhere as a line of HTML."""
    return escape(one_line(words))


def text_or_none(words: str | None) -> str | None:
    """None stays None."""
    return None if words is None else text(words)


def or_blank(words: str | None) -> str:
    """*words*, or a place to write them by hand."""
    return BLANK if words is None else text(words)


def moment(seconds: float) -> str:
    """Unix time as UTC."""
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return "unknown"


STYLE = """
@page { size: A4; margin: 16mm 15mm 18mm 15mm;
        @bottom-left { content: element(foot); width: 130mm; }
        @bottom-right { content: "page " counter(page) " of " counter(pages); font: 8pt "DejaVu Sans", sans-serif; } }
* { box-sizing: border-box; }
html { font: 8.6pt/1.38 "DejaVu Sans", Verdana, sans-serif; color: #000; background: #fff; }
body { margin: 0 auto; max-width: 190mm; }
h1 { font-size: 16pt; margin: 0 0 1mm; line-height: 1.2; }
h2 { font-size: 11pt; margin: 5mm 0 1.5mm; border-bottom: 1.5pt solid #000; break-after: avoid; }
h3 { font-size: 9pt; margin: 3mm 0 1mm; break-after: avoid; }
p { margin: 0 0 1.5mm; }
ul { margin: 0 0 1.5mm; padding-left: 5mm; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; margin: 0 0 2mm; }
th, td { text-align: left; vertical-align: top; padding: 1mm 1.6mm; border: 0.5pt solid #000;
         overflow-wrap: anywhere; }
th { font-weight: 700; }
tr { break-inside: avoid; }
td small, li small { display: block; font-size: 7.6pt; }
.short { font-size: 7.6pt; }
.short th, .short td { padding: 0.4mm 1.2mm; }
.short td small { font-size: 7pt; }
.verdict { font-weight: 700; }
.FAIL { border: 2pt solid #000; }
.INCONCLUSIVE { border: 2pt dashed #000; }
.result { border: 2pt solid #000; padding: 2mm 3mm; margin: 2mm 0; font-size: 10.5pt; font-weight: 700; }
.reasons { border: 2pt dashed #000; padding: 2mm 3mm; margin: 2mm 0; font-weight: 700; }
.foot { position: running(foot); font-size: 7pt; overflow-wrap: anywhere; }
.blank { display: inline-block; min-width: 38mm; height: 1.1em; border-bottom: 0.6pt solid #000; }
.mono { font-family: "DejaVu Sans Mono", monospace; font-size: 7.4pt; overflow-wrap: anywhere; }
.picture { width: 100%; break-inside: avoid; }
.plots { width: 100%; border: 0; }
.plots td { width: 50%; border: 0; padding: 1mm 0; }
.plots img { width: 88mm; }
.signatures td { height: 24mm; }
.appendix { break-before: page; }
.keep { break-inside: avoid; break-after: avoid; }
.watermark { position: fixed; top: 80mm; left: 0; width: 100%; text-align: center; transform: rotate(-35deg);
             font-size: 64pt; line-height: 1.3; font-weight: 700; color: #000; opacity: 0.13; pointer-events: none;
             z-index: 9; }
@media screen { body { padding: 8mm 4mm; } .foot { position: static; } }
"""

FONTS = {
    ("DejaVu Sans", "normal", "normal"): "DejaVuSans.ttf",
    ("DejaVu Sans", "bold", "normal"): "DejaVuSans-Bold.ttf",
    ("DejaVu Sans Mono", "normal", "normal"): "DejaVuSansMono.ttf",
}
"""Family, weight, style -> file of matplotlib's, so that a PDF has the same letters on each machine."""
