"""The sheet's pictures, for black-and-white printers: black on white; a grey is a hatch, never a meaning of its own."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence

from ...core.units import Unit
from ...generators.base import GeneratorPort
from ...units import counted, si
from ..plot_frame import ticks
from ..rates import percent
from ..sentence_rows import SentenceRow
from ..svg import Hatch, SvgPicture, text_width
from .sheet import Sheet

INK, HATCH = "#000000", "#9a9a9a"

WIDTH, HEIGHT = 440.0, 222.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 426.0, 46.0, 166.0
_LOST = "% of the frames lost"
_LEGEND_ROW = 17.0
_ASIDE = 0.2
"""Half the width of a trial that is set aside, as a share of its column."""

_MOST_MARKS = 120


def sentence_plot(row: SentenceRow, number: int) -> str:
    """Return what each trial measured, against what was promised; the side that breaks the promise is hatched.

    Of a load that is carried it is the share of frames lost, by which it is judged; else the sentence's own figure. A
    trial that is set aside is a hatched column: it has no mark, and no part in the scale.
    """
    record, demanded = row.record, row.record.requirement
    quantity = demanded.quantity
    lossy = quantity.threshold_is_load
    limit = 100 * record.promise.limit.value if lossy else demanded.threshold.number
    values = _values(row, lossy)
    known = [value for value in values if value is not None]
    picture = SvgPicture(WIDTH, HEIGHT + (_LEGEND_ROW if row.aside else 0), f"{number}. {record.sentence}")
    titles = textwrap.wrap(f"{number}. {record.sentence}: {record.verdict}", 54)[:2]
    picture.titles(8, 16, titles, 12, INK)
    low, high = _ends([*filter(math.isfinite, known), limit], lossy)

    def y(value: float) -> float:
        return _BOTTOM - (value - low) / (high - low) * (_BOTTOM - _TOP)

    top, bottom = (y(limit), _BOTTOM) if demanded.at_least and not lossy else (_TOP, y(limit))
    picture.hatched(_LEFT, top, _RIGHT - _LEFT, bottom - top, HATCH)
    unit = demanded.threshold.unit.value
    unit = f"{quantity.title or quantity.name} [%]" if unit == Unit.PERCENT.value else unit
    _draw_axes(picture, _unit(_LOST if lossy else unit, high), low, high)
    each = max(1, math.ceil(len(values) / _MOST_MARKS))
    groups = [values[at : at + each] for at in range(0, len(values), each)]
    for place, group in enumerate(groups):
        x, wide = _LEFT + (place + 0.5) / len(groups) * (_RIGHT - _LEFT), (_RIGHT - _LEFT) / len(groups)
        if None in group:
            picture.hatched(x - _ASIDE * wide, _TOP, 2 * _ASIDE * wide, _BOTTOM - _TOP, HATCH, Hatch.BACK)
        _draw_mark(picture, x, [value for value in group if value is not None], y)
    picture.line((_LEFT, y(limit)), (_RIGHT, y(limit)), INK, 2.2, "8 4")
    promised = f"a trial may lose {percent(limit / 100)}" if lossy else f"promised {demanded.demand}"
    picture.line((_LEFT, _BOTTOM + 16), (_LEFT + 26, _BOTTOM + 16), INK, 2.2, "8 4")
    picture.text(_LEFT + 32, _BOTTOM + 20, f"{promised}; hatched: worse than that", 11, INK)
    picture.rectangle(_LEFT + 9, _BOTTOM + 29, 7, 7, INK)
    name = (
        f"each mark is {'one' if each == 1 else each} of {counted(len(known), 'trial')}" if known else "no trial counts"
    )
    picture.text(_LEFT + 32, _BOTTOM + 37, name, 11, INK)
    if row.aside:
        picture.hatched(_LEFT + 4, _BOTTOM + 44, 18, 11, HATCH, Hatch.BACK)
        words = f"{counted(row.set_aside, 'trial')} set aside: any number of frames may be the testbed's"
        picture.text(_LEFT + 32, _BOTTOM + 54, words, 11, INK)
    return picture.svg()


def _values(row: SentenceRow, lossy: bool) -> list[float | None]:
    """Return what each trial measured, in the order in which they were sent; None: it is set aside."""
    losses = [100 * loss for loss in row.losses]
    figures = dict(zip(row.figures, losses, strict=True)) if lossy else row.figures
    known = {place: value for place, value in figures.items() if value is not None}
    return [known.get(place) for place in sorted({*known, *row.aside})]


def _draw_axes(picture: SvgPicture, divided: tuple[float, str], low: float, high: float) -> None:
    """Both axes, and round numbers at the upright one. *divided*: what figures are divided by, and their unit then."""
    factor, unit = divided
    for value, words in ticks(high / factor, low / factor):
        at = _BOTTOM - (value * factor - low) / (high - low) * (_BOTTOM - _TOP)
        picture.line((_LEFT - 4, at), (_LEFT, at), INK)
        picture.text(_LEFT - 7, at + 4, words, 11, INK, anchor="end")
    picture.text(13, (_TOP + _BOTTOM) / 2, unit, 11, INK, anchor="middle", turned=-90)
    picture.line((_LEFT, _TOP), (_LEFT, _BOTTOM), INK)
    picture.line((_LEFT, _BOTTOM), (_RIGHT, _BOTTOM), INK)


def _draw_mark(picture: SvgPicture, x: float, values: Sequence[float], y: Callable[[float], float]) -> None:
    """Of one value a square, of several a line from the least to the greatest."""
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) > 1:
        picture.line((x, y(min(finite))), (x, y(max(finite))), INK, 2.0)
    elif finite:
        picture.rectangle(x - 5, y(finite[0]) - 5, 10, 10, "#ffffff")
        picture.rectangle(x - 3.5, y(finite[0]) - 3.5, 7, 7, INK)
    if len(finite) < len(values):
        picture.text(x, _TOP + 12, "∞", 14, INK, anchor="middle", bold=True)


def _ends(values: Sequence[float], lossy: bool) -> tuple[float, float]:
    """The axis for *values*: with room at both ends, from 0 where it shows loss."""
    low, high = min(values), max(values)
    if lossy:
        return -0.1 * (high or 1.0), 1.25 * high or 1.0
    room = 0.35 * (high - low) or 0.02 * abs(high) or 1.0
    return max(0.0, low - room), high + room


def _unit(unit: str, high: float) -> tuple[float, str]:
    """Return what to divide figures up to *high* by, and their unit then: ``Mpps``."""
    if not unit.startswith(("pps", "bit/s")):
        return 1.0, unit
    words = si(high, unit).split(" ", 1)[1]
    return {"k": 1e3, "M": 1e6, "G": 1e9}.get(words.removesuffix(unit), 1.0), words


_WIDE, _BOX, _ROW = 900.0, 270.0, 58.0


def testbed_drawing(sheet: Sheet) -> str:
    """Generator and router, each port with its cable, and the computer that drives both."""
    environment, told = sheet.environment, sheet.about
    unread = (GeneratorPort(int(port), "", 0.0, False, "") for port in environment.interfaces if port.isdecimal())
    ports = environment.ports or tuple(unread)
    heads = _box_lines(sheet)
    head = 26 + 15 * max(map(len, heads))
    height = head + _ROW * max(1, len(ports)) + 8
    picture = SvgPicture(_WIDE, height + 92, "Testbed: generator, router, ports and cables")
    right = _WIDE - _BOX - 6
    for x, title, lines in zip((6.0, right), ("Traffic generator", "Router under test"), heads, strict=True):
        _frame(picture, x, 6, _BOX, height)
        picture.text(x + 10, 26, title, 14, INK, bold=True)
        for number, words in enumerate(lines):
            picture.text(x + 10, 44 + 15 * number, words, 11.5, INK)
    for number, port in enumerate(ports):
        at = head + 26 + _ROW * number
        index = str(port.index)
        picture.line((_BOX + 6, at), (right, at), INK, 2.4)
        for x in (_BOX + 6, right):
            picture.rectangle(x - 6, at - 6, 12, 12, INK)
        speed = f"{port.speed_bps / 1e9:g} Gbit/s" if port.speed_bps else ""
        picture.text(_WIDE / 2, at - 7, speed, 12, INK, anchor="middle")
        cable = _cut(told.testbed.cables.get(index, "cable: ______________________"), 330, 11.5)
        picture.text(_WIDE / 2, at + 17, cable, 11.5, INK, anchor="middle")
        facts = ", ".join(filter(None, (port.driver, port.mac)))
        picture.text(_BOX - 8, at - 1, f"port {index}", 13, INK, anchor="end", bold=True)
        picture.text(_BOX - 8, at + 14, _cut(facts, _BOX - 20, 10.5), 10.5, INK, anchor="end")
        interface = _cut(environment.interfaces.get(index, "?"), _BOX - 30, 13)
        picture.text(right + 14, at + 4, interface, 13, INK, bold=True)
    _computer(picture, sheet, height)
    return picture.svg()


def _box_lines(sheet: Sheet) -> tuple[list[str], list[str]]:
    facts, told = sheet.summary.facts, sheet.about
    generator = [told.testbed.generator or "", facts.get("generator", "")]
    serial = told.device.serial or "______________"
    router = [facts.get("router", ""), facts.get("software", ""), f"serial number {serial}"]
    return _wrapped(generator), _wrapped(router)


def _wrapped(words: Sequence[str]) -> list[str]:
    return [line for text in words for line in textwrap.wrap(text, 38)[:3]]


def _computer(picture: SvgPicture, sheet: Sheet, height: float) -> None:
    """The computer that drives both, below them."""
    x, y, wide = _WIDE / 2 - 150, height + 36, 300.0
    _frame(picture, x, y, wide, 46)
    host = sheet.environment.host.get("name", "")
    picture.text(x + 10, y + 19, "Computer that drives the test", 12.5, INK, bold=True)
    version = sheet.environment.code.get("version", "")
    words = ", ".join(filter(None, (str(host), f"Lineproof {version}" if version else "")))
    picture.text(x + 10, y + 36, _cut(words, wide - 20, 11.5), 11.5, INK)
    for end, words, anchor in ((80.0, "starts and counts traffic", "start"), (_WIDE - 80, "reads the router", "end")):
        if anchor == "end" and not any(key.startswith("router.") for key in sheet.environment.versions):
            continue  # a black box, which nobody logs in to
        picture.line((end, height + 6), (end, y + 23), INK, 1.0, "3 3")
        picture.line((end, y + 23), (x if end < x else x + wide, y + 23), INK, 1.0, "3 3")
        picture.text(end + (8 if anchor == "start" else -8), y + 17, words, 11.5, INK, anchor=anchor)


def _frame(picture: SvgPicture, x: float, y: float, width: float, height: float) -> None:
    for start, end in (
        ((x, y), (x + width, y)),
        ((x + width, y), (x + width, y + height)),
        ((x + width, y + height), (x, y + height)),
        ((x, y + height), (x, y)),
    ):
        picture.line(start, end, INK, 1.4)


def _cut(words: str, width: float, size: float) -> str:
    """*words*, cut where they are wider than *width*."""
    while len(words) > 1 and text_width(words, size) > width:
        words = words[:-2] + "…"
    return words
