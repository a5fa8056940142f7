"""Names that forms which still write HTML by hand take from here; it goes with the last of them."""

from __future__ import annotations

from html import escape

from .document import SIMULATED as SIMULATED
from .forms import known_rows as known_rows

STYLE = """
.lr-trials { font: 14px/1.45 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; padding: 12px;
             color: #1d2733; background: #fff; white-space: normal; }
.lr-trials h1 { font-size: 16px; margin: 0 0 4px; }
.lr-trials p { margin: 0 0 10px; color: #5a6673; }
.lr-trials .simulated { display: inline-block; margin: 0 0 8px; padding: 2px 8px; border-radius: 4px; font-weight: 600;
                        color: #8a2b00; background: #ffe9d9; }
.lr-trials .wide { overflow-x: auto; }
.lr-trials table { border-collapse: collapse; font-size: 12.5px; font-variant-numeric: tabular-nums; }
.lr-trials th, .lr-trials td { padding: 3px 7px; text-align: right; white-space: nowrap; border: 0;
                               border-bottom: 1px solid #e3e8ed; }
.lr-trials th { vertical-align: bottom; font-weight: 600; color: #46525f; border-bottom: 2px solid #b9c3cd; }
.lr-trials th:last-child { text-align: left; }
.lr-trials th small { display: block; font-weight: 400; color: #7b8794; }
.lr-trials td.note { text-align: left; white-space: normal; min-width: 20em; }
.lr-trials tr.first td { border-top: 1px solid #b9c3cd; }
.lr-trials tr.warm td { color: #8b96a1; }
.lr-trials tr.doubtful td { background: #f4f0e6; color: #6b5b2e; }
.lr-trials td.lost { color: #b3261e; font-weight: 600; }
.lr-trials td.good { color: #1f7a3f; }
"""
"""CSS of every table."""


def html_page(title: str, fragment: str) -> str:
    """*fragment* as an HTML page of its own."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>body {{ margin: 0; background: #fff; }}</style></head>\n<body>{fragment}</body></html>\n"
    )
