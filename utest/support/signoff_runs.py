"""Runs to sign off, and minisign's keys to sign them with."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from minisign import KeyPair

from lineproof.core.goal import read_goal
from lineproof.core.router_facts import RouterFacts
from lineproof.core.trial import Fault, Problem
from lineproof.evidence.records import EnvironmentRecord, TrialRecord
from lineproof.evidence.run import RunFolder
from lineproof.evidence.signoff.page import html_sheet
from lineproof.evidence.signoff.sheet import make_sheet
from lineproof.generators.base import GeneratorPort
from support.evidence_builders import LINK, promised, requirement_record, trial
from support.paths import ROOT

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
PASSWORD = "correct horse"
THROUGHPUT = "64b unidirectional ≥ 5 Mpps"
FORWARDS = "64b unidirectional forwards ≥ 6 Mpps"
LOSES = "imix unidirectional loses ≤ 1 % at 5 Mpps"
SENTENCES = (THROUGHPUT, FORWARDS, LOSES)


def environment(simulated: bool = False, **changes: Any) -> EnvironmentRecord:
    """Return that of a testbed with two cables."""
    facts = RouterFacts(os="Debian 12", firmware="coreboot 4.19", cpu="Atom C3558", version="22.02")
    ports = tuple(GeneratorPort(at, f"02:00:00:00:00:0{at}", LINK, True, "net_ixgbe") for at in (0, 1))
    found = EnvironmentRecord(
        "unknown",
        simulated,
        "lab",
        "netgate6100",
        "vpp",
        1.0,
        1_795_000_000.0,
        1_795_000_060.0,
        versions={"generator.server": "v3.08", "router.version": "22.02"},
        suite="Acceptance",
        goal=read_goal(ROOT / "variables" / "goals", "standard"),
        description="Netgate 6100",
        ports=ports,
        router_facts=facts,
        interfaces={"0": "TenGigabitEthernet3/0/0", "1": "TenGigabitEthernet3/0/1"},
    )
    return replace(found, **changes)


def left_run(
    results: Path,
    *verdicts: str,
    simulated: bool = False,
    closed: bool = True,
    spoilt: Sequence[int] = (),
    kind: str = "hardware",
    goal: str = "standard",
    **changes: Any,
) -> Path:
    """A run whose sentences, the three again and again, have these *verdicts*; three times PASS without.

    *spoilt*: trials of each that are set aside; *kind*: of testbed; *goal*: that judged.
    """
    run = RunFolder.create(results, "20261121T040000Z-abc123")
    with_end = replace(environment(simulated, **changes), run=run.run_id)
    run.write_environment(replace(with_end, ended=None))
    run.add_input("variables/testbeds/lab.yaml", f"kind: {kind}\n".encode())
    given = verdicts or ("PASS",) * len(SENTENCES)
    for number, (verdict, sentence) in enumerate(zip(given, itertools.cycle(SENTENCES), strict=False), 1):
        lost = {"PASS": 0, "FAIL": 400_000, "INCONCLUSIVE": 0}[verdict]
        for each in (1, 2, 3):
            problems = (Problem(Fault.LINK_DOWN, "port 1"),) if each in spoilt else ()
            measured = trial(number=each, pps=6.5e6, losses=(lost * each,), problems=problems)
            record = TrialRecord(
                run.run_id, simulated, number, f"Test {number}", sentence, "64b", 64.0, LINK, measured, evidence="keeps"
            )
            run.add(record)
        run.add(
            requirement_record(
                run=run.run_id,
                simulated=simulated,
                number=number,
                test=f"Test {number}",
                **promised(sentence, goal),
                verdict=verdict,
                message=f"{verdict}: as measured",
                trials=(1, 2, 3),
                deviations=("RFC 9971 asks for all directions together; here: the worst direction",),
            )
        )
    if closed:
        run.close(with_end)
    return run.path


def key_file(folder: Path, password: str | None = None, name: str = "key") -> tuple[Path, str]:
    """A new secret key in a file, and its public key; with a *password* that costs no second to try."""
    pair = KeyPair.generate()
    public = pair.public_key.to_base64().decode()
    if password is not None:
        pair.secret_key.encrypt(password, opslimit=32768, memlimit=1 << 20)
    path = folder / name
    path.write_bytes(bytes(pair.secret_key) + b"\n")
    return path, public


def file_of(folder: Path, name: str, lines: Sequence[str]) -> Path:
    """A file of these *lines*."""
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def waiver(sentence: str, author: str = "Jane Doe", expires: str = "2027-03-31") -> list[str]:
    """The lines of a waiver of *sentence*."""
    return [f"- sentence: {sentence}", f"  author: {author}", "  reason: ticket 4711", f"  expires: {expires}"]


def about(folder: Path, *lines: str) -> Path:
    """The file of the parties."""
    return file_of(folder, "about.yaml", lines)


def page(run: Path, **options: Any) -> str:
    """The sheet of *run* as HTML; *options* of ``make_sheet``."""
    return html_sheet(make_sheet(run, NOW, **options))


def told(html: str) -> str:
    """Return what a reader sees of *html*, without pictures."""
    body = re.sub(r"(?s)<(style|svg).*?</\1>", "", html.split("</head>")[1])
    body = re.sub(r"<(td|th|p|pre|h\d)", r" <\1", body)
    return " ".join(re.sub(r"<[^>]*>", "", body).replace("&#x27;", "'").split())
