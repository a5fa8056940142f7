"""Runs to sign off, and minisign's keys to sign them with."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from minisign import KeyPair

from lineproof.core.router_facts import RouterFacts
from lineproof.evidence.signoff.sheet import html_sheet, make_sheet
from lineproof.generators.base import GeneratorPort
from support.evidence_builders import LINK, RUN
from support.made_runs import Sentence, made_run

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
PASSWORD = "correct horse"
THROUGHPUT = "64b unidirectional ≥ 5 Mpps"
FORWARDS = "64b unidirectional forwards ≥ 6 Mpps"
LOSES = "imix unidirectional loses ≤ 1 % at 5 Mpps"
SENTENCES = (THROUGHPUT, FORWARDS, LOSES)


FIELDS: Mapping[str, Any] = {
    "testbed": "lab",
    "platform": "netgate6100",
    "software": "vpp",
    "clock_speed": 1.0,
    "started": 1_795_000_000.0,
    "versions": {"generator.server": "v3.08", "router.version": "22.02"},
    "suite": "Acceptance",
    "description": "Netgate 6100",
    "ports": tuple(GeneratorPort(at, f"02:00:00:00:00:0{at}", LINK, True, "net_ixgbe") for at in (0, 1)),
    "router_facts": RouterFacts(os="Debian 12", firmware="coreboot 4.19", cpu="Atom C3558", version="22.02"),
    "interfaces": {"0": "TenGigabitEthernet3/0/0", "1": "TenGigabitEthernet3/0/1"},
}
"""Fields of the record of a testbed with two cables."""


def left_run(results: Path, *verdicts: str, spoilt: Sequence[int] = (), kind: str = "hardware", **changes: Any) -> Path:
    """Return a run whose sentences, the three again and again, have these *verdicts*; three times PASS without.

    *spoilt*: trials of each that are set aside; *kind*: of testbed; *changes*: of FIELDS, or as of made_run.
    """
    given = enumerate(zip(verdicts or ("PASS",) * len(SENTENCES), itertools.cycle(SENTENCES), strict=False), 1)
    sentences = [
        Sentence(sentence, (5.7e6 if verdict == "FAIL" else 9.99e6,) * 3, verdict, test=f"Test {number}", spoilt=spoilt)
        for number, (verdict, sentence) in given
    ]
    inputs = {"variables/testbeds/lab.yaml": f"kind: {kind}\n".encode()}
    return made_run(results, RUN, *sentences, inputs=inputs, **{"goal": "standard", **FIELDS, **changes})


def key_file(folder: Path, password: str | None = None, name: str = "key") -> tuple[Path, str]:
    """Write a new secret key, and return its public one; with a *password* that costs no second to try."""
    pair = KeyPair.generate()
    public = pair.public_key.to_base64().decode()
    if password is not None:
        pair.secret_key.encrypt(password, opslimit=32768, memlimit=1 << 20)
    path = folder / name
    path.write_bytes(bytes(pair.secret_key) + b"\n")
    return path, public


def file_of(folder: Path, name: str, lines: Sequence[str]) -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def waiver(sentence: str, author: str = "Jane Doe", expires: str = "2027-03-31") -> list[str]:
    return [f"- sentence: {sentence}", f"  author: {author}", "  reason: ticket 4711", f"  expires: {expires}"]


def about(folder: Path, *lines: str) -> Path:
    return file_of(folder, "about.yaml", lines)


def page(run: Path, **options: Any) -> str:
    """Return the sheet of *run* as HTML; *options* of ``make_sheet``."""
    return html_sheet(make_sheet(run, NOW, **options))


def told(html: str) -> str:
    """Return what a reader sees of *html*, without pictures."""
    body = re.sub(r"(?s)<(style|svg).*?</\1>", "", html.split("</head>")[1])
    body = re.sub(r"<(td|th|p|pre|h\d)", r" <\1", body)
    return " ".join(re.sub(r"<[^>]*>", "", body).replace("&#x27;", "'").split())
