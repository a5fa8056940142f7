"""Answers of the server to requests, good and bad, single, batched and zipped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import Mock

import pytest

from lineproof_bench.server.rpc import Dispatcher
from support.paths import DATA
from support.server_support import Client

DATA = DATA / "trex-rpc"
NOT_SUPPORTED = ("no_such", "get_owner")
"""Methods of the recorded bad requests that no client calls."""


def ask(request: Any) -> Any:
    methods: Any = {"ping": lambda _: {"ts": 1.0}, "broken": Mock(side_effect=ZeroDivisionError("nobody's fault"))}
    return json.loads(Dispatcher(methods, "handle12").handle(json.dumps(request).encode()))


def test_batches_and_methods_that_fail() -> None:
    failed = ask({"id": 7, "method": "broken", "params": {"api_h": "handle12"}})
    assert failed["id"] == 7 and failed["error"]["code"] == -32603
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert ask([]) is None
    assert ask([ping]) == {"jsonrpc": "2.0", "id": 1, "result": {"ts": 1.0}}
    answers = ask([ping, {"id": 2, "method": "no_such"}, 5])
    assert [("result" in answer) for answer in answers] == [True, False, False]


def _form(answer: dict[str, Any]) -> tuple[Any, ...]:
    """Code and message of an error and whether it says more; the keys of an answer."""
    error = answer.get("error", {})
    return error.get("code"), error.get("message"), "specific_err" in error, sorted(answer)


@pytest.mark.slow
def test_bad_requests_get_the_codes_of_a_real_server(client: Client) -> None:
    """The requests of the recording, in its order, against the codes that TRex v3.08 answered."""
    lines = (DATA / "bad-requests.txt").read_text().splitlines()
    differences = []
    handler = ""
    for said, answered in zip(lines[::2], lines[1::2], strict=True):
        expected = json.loads(answered.removeprefix("   -> "))
        try:
            request = json.loads(said)
        except json.JSONDecodeError:
            if not said.startswith("{bad json"):
                continue  # shortened by the recorder
            request = None
        if isinstance(request, dict) and request.get("method") in NOT_SUPPORTED:
            assert json.loads(client.raw(said.encode()))["error"]["code"] == -32601
            continue
        if isinstance(request, dict) and "api_h" in request.get("params", {}):
            known = request["params"]["api_h"] == "llhkH54E"
            request["params"]["api_h"] = client.api_h if known else "xxxx"
        if isinstance(request, dict) and request.get("params", {}).get("handler") == "jDK8qwFH":
            request["params"]["handler"] = handler
        raw = json.dumps(request).encode() if request is not None else said.encode()
        answer = json.loads(client.raw(raw))
        if isinstance(answer, dict) and isinstance(answer.get("result"), str):
            handler = answer["result"]
        if isinstance(expected, dict):
            want, got = _form(expected), _form(answer)
            if want != got:
                differences.append((said, want, answer))
        else:
            assert type(answer) is type(expected)
    assert not differences


def test_counters_in_one_message_show_one_moment() -> None:
    still = [False]

    @contextmanager
    def one_moment() -> Iterator[None]:
        still[0] = True
        yield
        still[0] = False

    names = ("ping", "get_port_stats", "publish_now", "start_traffic")
    answering = Dispatcher(dict.fromkeys(names, lambda _: still[0]), "handle12", one_moment)

    def results(*methods: str) -> list[bool]:
        calls = [{"method": method, "params": {"api_h": "handle12"}} for method in methods]
        return [answer["result"] for answer in json.loads(answering.handle(json.dumps(calls).encode()))]

    assert results("ping", "get_port_stats", "publish_now") == [True] * 3
    # traffic starts while the clock runs
    assert results("get_port_stats", "start_traffic") == [False] * 2


@pytest.mark.slow
def test_the_server_supports_the_recorded_methods_and_names_others_as_not_supported(client: Client) -> None:
    files = (DATA / name for name in ("official-v3.08.jsonl", "pypi-0.3-translated.jsonl"))
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    recorded = {call["method"] for row in rows for call in row.get("batch", [row]) if "method" in call}
    # set_l2 is for IPv6 next hops, ping for the server's clock; by get_profile_list the shipped client knows profiles
    assert set(client.call("get_supported_cmds")) == recorded | {"set_l2", "ping", "get_profile_list"}
    assert client.call("get_profile_list", port_id=0) == ["_"]
    for method in ("get_stream_list", "pause_streams", "push_remote", "shutdown", "get_tpg_tags"):
        assert f"the method '{method}' is not supported" in client.call(method)["specific_err"]
