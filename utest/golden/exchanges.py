"""Exchanges between TRex's clients and servers: answers to recorded calls, and the calls that the driver makes."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

from bench.server.test_replay import OFFICIAL, PYPI, Replay, called, recorded
from golden import net
from lineproof.core.trial import Load
from lineproof.generators.base import Probe, directions_of
from lineproof.generators.trex.answer_limits import plain_bytes
from lineproof.generators.trex.client_choice import client_folder
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from lineproof_bench.server.rpc import Dispatcher
from support.catalogue import CATALOGUE
from support.server_support import Client, FakeBackend, serving

SHIPPED = "calls-shipped-v3.08.txt"


def texts() -> Mapping[str, str]:
    """Return the answers to each recording, and the driver's calls with each client.

    Where ``TREX_HOME`` names no client that a server ships, its calls are those that are recorded.
    """
    home = os.environ.get("TREX_HOME", "")
    files = {"answers-official-v3.08.txt": answers(OFFICIAL), "answers-pypi-0.3.txt": answers(PYPI)}
    files["calls-pypi-0.3.txt"] = calls("pypi")
    files[SHIPPED] = calls(home) if client_folder(Path(home or os.devnull)) else net.recorded("exchanges")[SHIPPED]
    return files


def answers(name: str) -> str:
    """Return each method of a recording with its parameters and the shape of the answer here, then the differences."""
    with serving(FakeBackend(speed=50)) as server, contextlib.closing(Client(server)) as client:
        replay, recording = Replay(client), recorded(name)
        replay.prepare(recording)
        replay.play(recording)
    return "\n".join([*replay.rows, *dict.fromkeys(replay.problems or ["no difference"])]) + "\n"


def calls(client: str) -> str:
    """Return the calls of one session with *client* by phase, each once: how often it polls is a matter of time."""
    phase, rows, handle = ["open"], dict[str, None](), Dispatcher.handle

    def kept(dispatcher: Dispatcher, *frames: bytes) -> bytes:
        request = json.loads(plain_bytes(frames[0]))
        for call in request if isinstance(request, list) else [request]:
            rows[f"{phase[0]}: {called(call)}"] = None
        return handle(dispatcher, *frames)

    with mock.patch.object(Dispatcher, "handle", kept), serving(FakeBackend()) as server:
        settings = TrexSettings("127.0.0.1", server.rpc_port, server.pub_port, username="tester", client=client)
        with contextlib.closing(TrexGenerator(settings)) as generator:
            for trial, probe in (("trial", None), ("latency trial", Probe(1000))):
                phase[0] = f"put for the {trial}"
                generator.prepare(CATALOGUE.profile(["64b"]), directions_of((0, 1), bidirectional=False), probe)
                phase[0] = trial
                generator.measure(Load(10_000), 0.2)
            phase[0] = "close"
    return "".join(f"{row}\n" for row in rows)
