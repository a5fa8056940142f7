"""Claims of ports: when that of a killed run is of no use any more, and what a clock that is set does to it."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from lineproof.generators.trex import port_claims
from lineproof.generators.trex.port_claims import CLAIM_LIFETIME, read_claims, write_claim
from lineproof.system.identity import identify, machine_uptime

HARDWARE = "192.0.2.10:4501"


def killed(server: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The claim of a process that has ended."""
    ended = replace(identify(os.getpid()), start="1")
    monkeypatch.setattr(port_claims, "identify", lambda pid: ended)
    claim = write_claim(server, {"0": "abc"})
    assert claim is not None
    return claim.path


@pytest.mark.parametrize("jump", [-1e9, 1e9])
def test_a_clock_that_is_set_makes_no_claim_old(jump: float, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, now = killed(HARDWARE, monkeypatch), time.time()
    monkeypatch.setattr("lineproof.generators.trex.port_claims.time.time", lambda: now + jump)
    ended, _ = read_claims(HARDWARE)
    assert [claim.path for claim in ended] == [path]


def test_a_claim_goes_after_its_lifetime(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, now = killed(HARDWARE, monkeypatch), machine_uptime()
    monkeypatch.setattr(port_claims, "machine_uptime", lambda: now + CLAIM_LIFETIME + 1)
    assert read_claims(HARDWARE) == ((), ()) and not path.exists()


@pytest.mark.slow
def test_a_claim_on_a_server_of_this_machine_goes_with_the_server(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        path = killed(f"127.0.0.1:{server.getsockname()[1]}", monkeypatch)
        assert read_claims(HARDWARE) == ((), ()) and path.exists()
    assert read_claims(HARDWARE) == ((), ()) and not path.exists()
