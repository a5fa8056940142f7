"""The TRex clients' time limits while this machine's clock is set."""

from __future__ import annotations

import sys
import time
from types import ModuleType

import pytest

from lineproof.generators.trex.client.answers import use_steady_clock


@pytest.mark.parametrize("jump", [-1e6, 1e6])
def test_a_client_does_not_notice_that_the_clock_is_set(jump: float, monkeypatch: pytest.MonkeyPatch) -> None:
    clients = {name: ModuleType(name) for name in ("someclient", "someclient.connection", "someclients")}
    for name, module in clients.items():
        vars(module)["time"] = time
        monkeypatch.setitem(sys.modules, name, module)
    use_steady_clock("someclient")
    began = time.time()
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    for name in ("someclient", "someclient.connection"):
        assert abs(vars(clients[name])["time"].time() - began) < 100
        assert vars(clients[name])["time"].sleep is time.sleep
    assert vars(clients["someclients"])["time"] is time
