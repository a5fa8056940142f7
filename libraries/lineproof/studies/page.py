"""A study as one page of HTML with pictures that needs nothing else, and whether a run still has that."""

from __future__ import annotations

import math
import re
from html import escape
from pathlib import Path

from ..errors import ConfigError
from ..evidence.environment import code_digest
from ..evidence.integrity import Alteration
from ..evidence.resume import FINGERPRINTS
from ..evidence.run import read_run
from ..evidence.run_files import MEASUREMENTS, STUDY_PAGE, partial
from ..evidence.signoff.html_parts import picture, text
from ..evidence.tables import SIMULATED
from ..files import read_file, write_whole
from .fitness import senders_of
from .forms import (
    HEADS,
    cell_words,
    headline,
    notes,
    sender_heads,
    sender_words,
)
from .history import read_results
from .pictures import pictures_of, sender_pictures
from .preparing import CODE
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


def write_page(found: StudyResults) -> Path:
    """Write the page into the run's folder; returns it. Raises TestbedError."""
    path = found.folder / STUDY_PAGE
    write_whole(path, page(found), fresh=partial(path))
    return path


_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)")

LARGEST_PAGE = 64 * 2**20
"""Bytes. The page of a study of 100 blocks has less than one of these MB."""


def check_page(folder: Path) -> tuple[tuple[Alteration, ...], tuple[str, ...]]:
    """Make the page in *folder* again from the records: whether it is not what these come to, and notes.

    The records must be as the run left them. Another Lineproof may write other words, which is a note. Raises
    ConfigError if the page cannot be read.
    """
    path = folder / STUDY_PAGE
    if not path.exists() and not path.is_symlink():
        return (), ()
    if not (folder / MEASUREMENTS).is_file():
        return (Alteration(STUDY_PAGE, "was added: the run is no study's"),), ()
    if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_PAGE:
        return (Alteration(STUDY_PAGE, "is no file that a study's run leaves"),), ()
    try:
        found, environment = read_results(folder), read_run(folder).environment
    except ConfigError as error:
        return (), (f"{STUDY_PAGE}: not compared with the records: {error}",)
    if _same(read_file(path).decode(errors="replace"), page(found)):
        return (), ()
    again = f"'lineproof study report {folder.name}' makes it again"
    other = Alteration(STUDY_PAGE, f"is not what the records come to; {again}")
    known = environment.extra.get(FINGERPRINTS) if environment else None
    if isinstance(known, dict) and known.get(CODE) == code_digest():
        return (other,), ()
    return (), (f"{other}; another Lineproof made the run, with other words",)


def _same(one: str, other: str) -> bool:
    """Return whether two forms say the same; numbers may differ by what two versions of a library round differently."""
    if one == other:
        return True
    ours, theirs = _NUMBER.split(one), _NUMBER.split(other)
    return len(ours) == len(theirs) and all(
        mine == yours or (place % 2 == 1 and math.isclose(float(mine), float(yours), rel_tol=1e-9))
        for place, (mine, yours) in enumerate(zip(ours, theirs, strict=True))
    )
