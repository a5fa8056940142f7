"""The server driven by the client that TRex v3 ships, in a process of its own, where there is one.

``TREX_HOME`` names TRex's ``scripts`` folder; ``TREX_PYTHON`` an interpreter that its client runs in, if not this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.paths import SUPPORT
from support.server_support import PEERS, FakeBackend, serving

HOME = os.environ.get("TREX_HOME", "")
CLIENT = Path(HOME) / "automation" / "trex_control_plane" / "interactive"
SESSION = SUPPORT / "server_official.py"
NEEDED = "needs the client that TRex ships: TREX_HOME has to name TRex's scripts folder"

PYTHON = os.environ.get("TREX_PYTHON", "")
TOO_NEW = "TRex's client with the libraries it brings along needs Python 3.12 or older: TREX_PYTHON may name one"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not HOME or not CLIENT.is_dir(), reason=NEEDED),
    pytest.mark.skipif(not PYTHON and sys.version_info >= (3, 13), reason=TOO_NEW),
]


def test_a_session_of_the_shipped_client() -> None:
    python = PYTHON or sys.executable
    with serving(FakeBackend(speed=10, lost=0.25)) as server:
        ran = subprocess.run(
            [python, str(SESSION), HOME, str(server.rpc_port), str(server.pub_port)],
            capture_output=True,
            text=True,
            timeout=60,
            start_new_session=True,
        )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    saw: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    assert saw["connect_s"] < 1.5
    assert saw["programs"] == [10_000, 7500]
    assert saw["chain"] == 150
    assert saw["groups"] == {"flow_stats": [7], "latency": [20]}
    assert {"7", "20"} <= set(saw["flow_stats"])
    assert set(saw["latency"]["histogram"]) == {"10", "90"}
    assert saw["promiscuous"] == "on"
    assert saw["resolved"] == PEERS[0]
    assert not saw["active"]
