"""Exchanges between TRex's clients and servers: answers to recorded calls, and the calls that the driver makes.

Sessions recorded between real clients and a real server are played to the embedded server: same shapes of answers. They
leave out repeated calls and shorten long strings and arrays; what they say of a machine was removed.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from golden import net
from lineproof.core.trial import Load
from lineproof.generators.base import Probe, directions_of
from lineproof.generators.trex.client.shipped import client_folder
from lineproof.generators.trex.client.sockets import plain_bytes
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from lineproof_bench.server.rpc import Dispatcher
from support.catalogue import CATALOGUE
from support.paths import DATA
from support.patience import wait_until
from support.server_support import Client, FakeBackend, serving

OFFICIAL, PYPI = "official-v3.08.jsonl", "pypi-0.3-translated.jsonl"
HANDLES = {"api_h", "handler"}
FRAME = base64.b64encode(bytes(60)).decode()
SHORTENED = re.compile(r"\.\.\.<\d+ (chars|items)>")
SHIPPED = "calls-shipped-v3.08.txt"
POLLED, WHILE_SENDING = "get_utilization", "while sending"
"""A call that the clock makes while frames are sent: its place among the others is a matter of time."""


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
    """Return each method of a recording, its parameters, the shape of the answer, and below it the recorded other one.

    Memory pools are a machine's own, and what is empty on one side has no shape.
    """
    with serving(FakeBackend(speed=50)) as server, contextlib.closing(Client(server)) as client:
        replay, recording = Replay(client), recorded(name)
        replay.prepare(recording)
        client.barrier()
        replay.play(recording)
        replay.compare_published(recording, client.barrier())
    return "\n".join(replay.rows) + "\n"


def calls(client: str) -> str:
    """Return the calls of one session with *client* by phase, each once: how often it polls is a matter of time."""
    phase, rows, handle = ["open"], dict[str, None](), Dispatcher.handle

    def kept(dispatcher: Dispatcher, *frames: bytes) -> bytes:
        request = json.loads(plain_bytes(frames[0]))
        for call in request if isinstance(request, list) else [request]:
            rows[f"{WHILE_SENDING if call['method'] == POLLED else phase[0]}: {called(call)}"] = None
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
    return "".join(f"{row}\n" for row in sorted(rows, key=lambda row: row.startswith(WHILE_SENDING)))


def shape(data: Any) -> Any:
    """Return keys and types. Numbered keys are one key; an array is the set of its elements' shapes."""
    if isinstance(data, dict):
        keys: dict[str, Any] = {}
        for key, value in data.items():
            name = "#" if key.lstrip("-").isdigit() else key
            keys[name] = merged(keys[name], shape(value)) if name in keys else shape(value)
        return keys
    if isinstance(data, list):
        shapes = [shape(item) for item in data if not (isinstance(item, str) and SHORTENED.search(item))]
        return [one for number, one in enumerate(shapes) if one not in shapes[:number]]
    return type(data).__name__


def merged(one: Any, other: Any) -> Any:
    return one if one == other else (one, other)


class Replay:
    """Plays a recording. Handlers and handles in it are replaced by those of this server.

    ``rows``: each call with the shape of its answer, and below it that of the recorded one if it is another.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.rows: dict[str, None] = {}
        self.captures = 0

    def play(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if "batch" in row:
                calls, answers = row["batch"], self._send(list(row["batch"]), row["zip"][0])
                assert isinstance(answers, list) is bool(row["reply_is_array"])
                answers = answers if isinstance(answers, list) else [answers]
                for call, answer in zip(calls, answers, strict=True):
                    self._compare(call, answer)
            elif "method" in row:
                self._compare(row, self._send(row, row["zip"][0]))

    def prepare(self, rows: list[dict[str, Any]]) -> None:
        """Leave streams on the ports, as the recorded session found them."""
        for row in rows:
            if row.get("method") == "get_all_streams":
                port = row["params"]["port_id"]
                streams = row["result"].get("profiles", {"_": row["result"].get("streams", {})}).get("_", {})
                self.client.acquire(port, "tester", 7, force=True)
                for number, stream in streams.items():
                    answer = self.client.on(port, "add_stream", stream_id=int(number), stream=_whole(stream))
                    assert answer == {}, answer
                self.client.on(port, "release")
                self.client.acquire(port, "tester", 7, force=True)

    def compare_published(self, rows: list[dict[str, Any]], messages: list[dict[str, Any]]) -> None:
        """Compare the counters that were published meanwhile with recorded ones."""
        name = "trex-global"
        recorded = [row["published"] for row in rows if row.get("published", {}).get("name") == name]
        for message in (message for message in messages if message["name"] == name):
            self._note_other(name, shape(message["data"]), shape(recorded[0]["data"]))

    def _send(self, request: Any, zipped: bool) -> Any:
        calls = request if isinstance(request, list) else [request]
        for call in calls:
            if call["method"] in ("add_stream", "start_traffic", "remove_all_streams", "validate"):
                self._wait(call["params"]["port_id"])
        plain = [self._call(call) for call in calls]
        body = plain if isinstance(request, list) else plain[0]
        if zipped:
            return self.client.zipped(body)
        return json.loads(self.client.raw(json.dumps(body).encode()))

    def _wait(self, port: int) -> None:
        wait_until(lambda: self.client.call("get_port_status", port_id=port)["state"] != "TX")

    def _call(self, call: dict[str, Any]) -> dict[str, Any]:
        params = _whole(call["params"])
        if "api_h" in params:
            params["api_h"] = self.client.api_h
        if "handler" in params:
            params["handler"] = self.client.handlers[params["port_id"]]
        if "capture_id" in params:
            params["capture_id"] = self.captures
        return {"jsonrpc": "2.0", "id": "x", "method": call["method"], "params": params}

    def _compare(self, call: dict[str, Any], answer: dict[str, Any]) -> None:
        method, result = call["method"], answer.get("result")
        if method == "acquire" and isinstance(result, str):
            self.client.handlers[call["params"]["port_id"]] = result
        if isinstance(result, dict) and "capture_id" in result:
            self.captures = result["capture_id"]
        here, there = (shape(reply.get("result", reply.get("error"))) for reply in (answer, call))
        if method == "get_async_events":
            # which events there are by then is a matter of time
            known = {event["type"]: shape(event) for event in call["result"]["data"]}
            for event in answer["result"]["data"]:
                self._note_other(f"event {event['type']}", shape(event), known.get(event["type"], shape(event)))
            here, there = {**here, "data": []}, {**there, "data": []}
        self.rows[f"{called(call)} -> {json.dumps(here, sort_keys=True)}"] = None
        self._note_other(called(call), here, there)

    def _note_other(self, what: str, here: Any, there: Any) -> None:
        if here != there:
            self.rows[f"    {what} was recorded as {json.dumps(there, sort_keys=True)}"] = None


def called(call: Mapping[str, Any]) -> str:
    """Return the method of *call* and the names of its parameters."""
    return f"{call['method']}({', '.join(sorted((call.get('params') or {}).keys() - HANDLES))})"


def _whole(data: Any) -> Any:
    """Return *data* with what the recorder shortened made whole."""
    if isinstance(data, dict):
        return {
            key: FRAME if key == "binary" and SHORTENED.search(value) else _whole(value) for key, value in data.items()
        }
    return [_whole(item) for item in data] if isinstance(data, list) else data


def recorded(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / "trex-rpc" / name).read_text().splitlines()]
