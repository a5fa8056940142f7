"""A study as one page of HTML that needs nothing else: tables, pictures as SVG, and what must be known of them."""

from __future__ import annotations

from html import escape

from ..evidence.signoff.html_parts import picture, text
from ..evidence.tables import SIMULATED
from .fitness import senders_of
from .forms import HEADS, cell_words, headline, notes, sender_heads, sender_words
from .pictures import pictures_of, sender_pictures
from .results import Cell, StudyResults

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'"
"""Content Security Policy of the page: a browser asks nothing of the network, whatever a name or a reason contains."""

STYLE = """
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; color: #1d2733;
       background: #fff; margin: 0 auto; padding: 24px; max-width: 1060px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 36px 0 8px; }
p { margin: 0 0 8px; } .faint { color: #5a6673; }
.simulated { display: inline-block; margin: 0 0 10px; padding: 3px 10px; border-radius: 4px; font-weight: 600;
             color: #8a2b00; background: #ffe9d9; }
.headline { font-size: 17px; font-weight: 600; margin: 12px 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; margin: 0 0 12px; }
th, td { padding: 3px 10px; text-align: right; border-bottom: 1px solid #e3e8ed; white-space: nowrap; }
th { font-weight: 600; color: #46525f; border-bottom: 2px solid #b9c3cd; }
th:first-child, td:first-child, th:nth-child(6), td:nth-child(6) { text-align: left; white-space: normal; }
td small { color: #5a6673; display: block; } tr.outside td:last-child { color: #b3261e; font-weight: 700; }
tr.baseline td { background: #f4f7f9; }
.variants th, .variants td { text-align: left; white-space: normal; }
nav { columns: 3; font-size: 13.5px; margin: 12px 0; } nav a { color: #2c6fa6; text-decoration: none; display: block; }
figure { margin: 0 0 14px; } li { margin: 0 0 4px; }
@media print { h2, table, figure { break-inside: avoid; } }
"""


def page(found: StudyResults) -> str:
    """The whole page. Names and reasons are escaped."""
    study = found.study
    marked = f'<div class="simulated">{SIMULATED}</div>' if found.simulated else ""
    title = f"{'SIMULATED: ' if found.simulated else ''}{study.title}"
    about = [study.about, f"Published figures: {study.source}." if study.source else ""]
    facts = f"Study {study.study}, run {found.run}, testbed {found.testbed}; {study.repeats} blocks, seed {study.seed}"
    sections = [_section(found, row, cells, number) for number, (row, cells) in enumerate(found.rows(), 1)]
    links = "".join(f'<a href="#r{number}">{text(row)}</a>' for number, (row, _) in enumerate(found.rows(), 1))
    said = "".join(f"<li>{text(note)}</li>" for note in notes(found))
    variants = "".join(
        f"<tr><td>{text(name)}</td>{''.join(f'<td>{text(word)}</td>' for word in _box(found, name))}"
        f"<td>{text(own.about)}</td></tr>"
        for name, own in study.variants.items()
    )
    boxes = "<th>testbed</th>" if study.bypass else "<th>platform</th><th>software</th>"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{text(title)}</title><style>{STYLE}</style></head><body>\n"
        f"{marked}<h1>{text(study.title)}</h1>"
        + "".join(f"<p>{text(words)}</p>" for words in about if words)
        + f'<p class="faint">{text(facts)}</p><p class="headline">{text(headline(found))}</p>\n<nav>{links}</nav>'
        f'<div class="wide"><table class="variants"><thead><tr><th>variant</th>{boxes}'
        f"<th>what it is</th></tr></thead><tbody>{variants}</tbody></table></div>\n"
        + _generators(found)
        + "\n".join(sections)
        + (f"<h2>What must be known of these figures</h2><ul>{said}</ul>" if said else "")
        + "</body></html>\n"
    )


def _box(found: StudyResults, variant: str) -> tuple[str, ...]:
    """Return what a variant is measured on: without a router, the testbed."""
    own = found.study.variants[variant]
    if found.study.bypass:
        return (own.testbed or found.testbed,)
    return found.study.platform_of(variant), own.software or "first"


def _generators(found: StudyResults) -> str:
    """The table and the curves of a study of generators; nothing of another."""
    senders = senders_of(found)
    if not senders:
        return ""
    heads = "".join(f"<th>{escape(head)}</th>" for head in sender_heads(senders))
    lines = "".join(
        f"<tr>{''.join(f'<td>{text(word)}</td>' for word in sender_words(sender))}</tr>" for sender in senders
    )
    pictures = "".join(f"<figure>{picture(name, svg)}</figure>" for name, svg in sender_pictures(found, senders))
    return (
        f'<h2>Line rate</h2>{pictures}<div class="wide"><table class="variants"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{lines}</tbody></table></div>\n"
    )


def _section(found: StudyResults, row: str, cells: list[Cell], number: int) -> str:
    heads = "".join(f"<th>{escape(head)}</th>" for head in HEADS)
    lines = []
    for cell in cells:
        kind = "baseline" if cell.variant in found.study.baselines else ""
        kind = f"{kind} outside".strip() if cell.inside is False else kind
        words = "".join(f"<td>{text(word)}</td>" for word in cell_words(cell, found.study))
        lines.append(f'<tr class="{kind}">{words}</tr>')
    about = found.study.measures[row].about
    pictures = "".join(f"<figure>{picture(name, svg)}</figure>" for name, svg in pictures_of(found, row, cells))
    return (
        f'<h2 id="r{number}">{text(row)} <span class="faint">[{text(cells[0].unit)}]</span></h2>'
        f"{f'<p>{text(about)}</p>' if about else ''}"
        f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
        f"{pictures}"
    )
