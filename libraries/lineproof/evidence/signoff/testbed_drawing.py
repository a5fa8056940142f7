"""The drawing of the testbed on the sheet: black on white, with places to write by hand."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ...generators.base import GeneratorPort
from ..svg import SvgPicture, fitted
from .sheet import Sheet

INK = "#000000"

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
        picture.rectangle(x, 6, _BOX, height, "white", edge=INK)
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
        cable = fitted(told.testbed.cables.get(index, "cable: ______________________"), 330, 11.5)
        picture.text(_WIDE / 2, at + 17, cable, 11.5, INK, anchor="middle")
        facts = ", ".join(filter(None, (port.driver, port.mac)))
        picture.text(_BOX - 8, at - 1, f"port {index}", 13, INK, anchor="end", bold=True)
        picture.text(_BOX - 8, at + 14, fitted(facts, _BOX - 20, 10.5), 10.5, INK, anchor="end")
        interface = fitted(environment.interfaces.get(index, "?"), _BOX - 30, 13)
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
    picture.rectangle(x, y, wide, 46, "white", edge=INK)
    host = sheet.environment.host.get("name", "")
    picture.text(x + 10, y + 19, "Computer that drives the test", 12.5, INK, bold=True)
    version = sheet.environment.code.get("version", "")
    words = ", ".join(filter(None, (str(host), f"Lineproof {version}" if version else "")))
    picture.text(x + 10, y + 36, fitted(words, wide - 20, 11.5), 11.5, INK)
    for end, words, anchor in ((80.0, "starts and counts traffic", "start"), (_WIDE - 80, "reads the router", "end")):
        if anchor == "end" and not any(key.startswith("router.") for key in sheet.environment.versions):
            continue  # a black box, which nobody logs in to
        picture.line((end, height + 6), (end, y + 23), INK, 1.0, "3 3")
        picture.line((end, y + 23), (x if end < x else x + wide, y + 23), INK, 1.0, "3 3")
        picture.text(end + (8 if anchor == "start" else -8), y + 17, words, 11.5, INK, anchor=anchor)
