# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The server driven by the real trex-stl-lib 0.3, in a process group of its own: the client can kill its group."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from support.paths import SUPPORT
from support.server_support import FakeBackend, serving

CLIENT = SUPPORT / "server_client.py"


def drive(server: Any, scene: str, limit: float = 20) -> dict[str, Any]:
    """Run *scene* of ``server_client.py`` and return what it saw."""
    ran = subprocess.run(
        [sys.executable, str(CLIENT), scene, str(server.rpc_port), str(server.pub_port)],
        capture_output=True,
        text=True,
        timeout=limit,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": "libraries"},
        cwd=CLIENT.parents[1],
    )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_a_session_sends_and_counts_exactly() -> None:
    backend = FakeBackend(speed=10, lost=0.25)
    with serving(backend) as server:
        saw = drive(server, "session")
    # per cent, pps with a prefix, and plain pps; both ports for 2 s of the testbed's clock each
    sent = saw["sent"]
    assert sent["10%"] == [round(10e9 * 0.1 / 672 * 2)] * 2
    assert sent["14.88mpps"] == [29_760_000] * 2
    assert sent["1000pps"] == [2000] * 2
    assert saw["received"]["1000pps"] == [1500] * 2
    assert saw["stopped"] == []
    for traffic, duration in backend.starts[:3]:
        assert sorted(traffic) == [0, 1], "both directions begin in one call to the backend"
        assert duration == 2.0
    streams = backend.starts[0][0][0]
    assert streams[0].frame[:12] == bytes.fromhex("020000000101020000000001")
    assert [variable.offset for variable in streams[0].variables] == [26, 30]
    assert streams[0].fix_ipv4_checksum == 14


@pytest.mark.slow
def test_update_pause_resume_and_stop() -> None:
    backend = FakeBackend()
    with serving(backend) as server:
        saw = drive(server, "steer")
    assert saw["active"] == [0]
    assert saw["after_stop"] == []
    assert backend.updates == [(0, pytest.approx(500))]
    assert saw["counted_while_paused"] == 0
    assert saw["owner_after_release"] == ""
