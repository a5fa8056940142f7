"""What no run knows: the parties, the device's serial number, and which sentences somebody waives. Two YAML files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints

from ...config import Config, load_config, read_yaml, validate_config
from ...errors import ConfigError
from ...visible import shortened
from ..records import RequirementRecord

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=600)]


class Party(Config):
    """Who it is, and who signs for it. What is missing is a blank to fill in by hand."""

    name: Words | None = None
    address: Words | None = None
    contact: Words | None = None
    signatory: Words | None = None


class Parties(Config):
    """``supplier``: promises. ``tester``: measures. ``buyer``: accepts and waives. ``witness``: was there."""

    supplier: Party = Party()
    tester: Party = Party()
    buyer: Party = Party()
    witness: Party | None = None


class Device(Config):
    """The router, as its nameplate and papers say."""

    manufacturer: Words | None = None
    model: Words | None = None
    serial: Words | None = None
    hardware: Words | None = None
    firmware: Words | None = None


class Bench(Config):
    """The testbed, as no program can know it. ``cables``: by the generator's port, ``{"0": "DAC 1 m, no. 4711"}``."""

    generator: Words | None = None
    place: Words | None = None
    cables: Mapping[Annotated[str, Field(pattern=r"[0-9]{1,2}")], Words] = {}


class About(Config):
    """The file of ``--about``. ``deviations``: what was done otherwise than agreed, beside what the records declare."""

    contract: Words | None = None
    parties: Parties = Parties()
    device: Device = Device()
    testbed: Bench = Bench()
    deviations: Annotated[tuple[Words, ...], Field(max_length=50)] = ()
    remarks: Words | None = None


def _date(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        raise ValueError("expected a date as 2027-03-31")
    return value


class Waiver(Config):
    """``author`` answers for ``sentence`` not being kept, or not proven, up to and with the day ``expires`` (UTC).

    ``test``: the test with the sentence, where several have it.
    """

    sentence: Words
    test: Words | None = None
    author: Words
    reason: Words
    expires: Annotated[date, BeforeValidator(_date)]

    def fits(self, record: RequirementRecord) -> bool:
        """Return whether it is about *record*."""
        return _plain(self.sentence) == _plain(record.sentence) and self.test in (None, record.test)


class Waivers(Config):
    """The file of ``--waivers``."""

    waivers: Annotated[tuple[Waiver, ...], Field(min_length=1, max_length=1000)]


def read_about(path: Path | None) -> About:
    """The file *path*; of none, one that says nothing. Raises ConfigError."""
    return About() if path is None else load_config(path, About)


def read_waivers(path: Path | None, records: Sequence[RequirementRecord], today: date) -> dict[int, Waiver]:
    """The waivers of *path*, by the number of the sentence in *records* that each is about.

    Raises ConfigError naming the waiver that has expired before *today*, that is about no sentence of the run, or about
    one that another waiver is about.
    """
    if path is None:
        return {}
    data, lines = read_yaml(path)
    found: dict[int, Waiver] = {}
    for index, waiver in enumerate(validate_config(data, Waivers, path, lines).waivers):
        line, name = lines.get(("waivers", str(index))), shortened(waiver.sentence)
        if waiver.expires < today:
            words = f"the waiver of '{name}' by {shortened(waiver.author)} expired on {waiver.expires}"
            raise ConfigError(f"{words}; ask for a new one, or remove it", path, line)
        mine = [record.number for record in records if waiver.fits(record)]
        if not mine:
            known = "; ".join(shortened(record.sentence) for record in records if record.verdict != "PASS")
            words = f"no sentence of this run is '{name}'{f' of test {waiver.test!r}' if waiver.test else ''}"
            raise ConfigError(f"{words}; those that need a waiver: {known or 'none'}", path, line)
        if twice := [number for number in mine if number in found]:
            words = f"a second waiver of sentence {twice[0]}, '{name}'; keep one, or name its 'test'"
            raise ConfigError(words, path, line)
        found |= dict.fromkeys(mine, waiver)
    return found


def _plain(sentence: str) -> str:
    return " ".join(sentence.replace(">=", "≥").replace("<=", "≤").split())
