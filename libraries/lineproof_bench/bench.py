"""The bench of one specification: the backend, its TRex-compatible server, and the router that a model has."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lineproof.platforms import RouterSetup
from lineproof.simulation import Habit, InjectedFault, Noise, RouterHabits
from lineproof.units import l2_bits

from .backend import Backend, Clock, ServerAction, StreamTraffic
from .faults.model import FaultyModel
from .model.backend import ModelSettings
from .model.counting import Sending
from .model.forwarding import Fate
from .model.latency import FIXED_LATENCY, Delay
from .model.routing import Fib, frame_of
from .model.schema import load_platform
from .server.loop import ServerSettings, TrexServer
from .server.ports import ServerCard, ServerHabits, read_card


class EmbeddedBench:
    """A server, and the router of a model as its shells see it, which stays when a fault ends the server.

    Raises ValueError for an unknown backend, ConfigError for a card's file that is wrong, PortTaken; a backend raises
    its own errors.
    """

    def __init__(self, specification: Mapping[str, Any]) -> None:
        self._specification, card = specification, specification.get("nic")
        self._nic = read_card(str(card)) if card else ServerCard()
        self._habits = [Habit.model_validate(row) for row in self._specification.get("habits") or ()]
        self._clock = Clock(float(self._specification.get("clock_speed") or 1.0))
        self._model: FaultyModel | None = None
        self._stopped = asyncio.Event()
        self._backend, self._now = self._open()
        self._rpc_port = int(self._specification.get("rpc_port", 0))
        self._pub_port = int(self._specification.get("pub_port", 0))
        self._server = self._listen()
        self._rpc_port, self._pub_port = self._server.rpc_port, self._server.pub_port

    def _open(self, left: ServerAction | None = None) -> tuple[Backend, Callable[[], float]]:
        """Return the backend and its clock in s. *left*: by a server that this one replaces."""
        kind = self._specification.get("backend")
        if kind == "model":
            former, self._model = self._model, modelled(self._specification, self._habits, self._clock)
            if former:
                self._model.take_over(former.state())
            faults = self._specification.get("faults") or ()
            self._model.cause([InjectedFault.model_validate(row) for row in faults] if left is None else left.faults)
            return self._model, self._clock.now
        if kind == "wire":
            from .wire.backend import WireBackend, WirePort

            # it counts no streams of Mpps by their groups
            self._nic = ServerCard(rx_caps=("latency", "rx_bytes"))
            rows = self._specification["ports"]
            return WireBackend([WirePort(**{"index": index, **row}) for index, row in enumerate(rows)]), time.monotonic
        raise ValueError(f"'backend' is {kind!r}; expected 'model' or 'wire'")

    def _listen(self) -> TrexServer:
        settings = ServerSettings(
            rpc_port=self._rpc_port,
            pub_port=self._pub_port,
            nic=self._nic,
            habits=ServerHabits(self._habits, self._specification.get("next_hops") or ()),
        )
        return TrexServer(self._backend, self._now, settings)

    def facts(self) -> dict[str, Any]:
        """Return what the parent gets with the ready line."""
        ports = [asdict(port) for port in self._backend.ports]
        # of real frames only
        sender = getattr(self._backend, "sender", None)
        return {"rpc_port": self._rpc_port, "pub_port": self._pub_port, "sender": sender, "ports": ports}

    async def serve(self) -> None:
        """Serve until :meth:`stop`, also after a fault has ended the server and started it again on the same ports."""
        try:
            while action := await self._server.serve():
                if action.what != "restart":
                    return
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopped.wait(), action.after / self._clock.speed)
                if self._stopped.is_set():
                    return
                self._backend, self._now = self._open(action)
                self._server = self._listen()
        finally:
            self._backend.close()

    def stop(self) -> None:
        """Let :meth:`serve` end soon, also while no server is there."""
        self._stopped.set()
        self._server.stop()

    def cause(self, fault: Any) -> None:
        """Let *fault*, as JSON, happen too. Raises ValueError in a sentence."""
        self.router.cause((InjectedFault.model_validate(fault),))

    @property
    def router(self) -> FaultyModel:
        """The router of the model, for its shells; another one after each restart. Raises ValueError without one."""
        if self._model is None:
            raise ValueError("this bench has no model of a router: its frames are real")
        return self._model


def modelled(specification: Mapping[str, Any], habits: Sequence[Habit], clock: Clock) -> FaultyModel:
    """Return the model of the ``platform_file`` in *specification*, or of the cable that bypasses it."""
    path = Path(specification["platform_file"])
    return (DirectCableModel if specification.get("bypass") else FaultyModel)(
        load_platform(path).cabled(specification.get("cabled") or ()),
        str(specification["software"]),
        clock,
        ModelSettings(
            specification.get("rx_queues"),
            Noise.model_validate(specification.get("noise") or {}),
            int(specification.get("seed") or 0),
            path,
            frozenset(specification.get("set_up") or ()),
            [RouterSetup.model_validate(row) for row in specification.get("setups") or ()],
            habits,
            RouterHabits.model_validate(specification.get("router_habits") or {}),
        ),
    )


class DirectCableModel(FaultyModel):
    """Every frame comes back unchanged at the other port of the pair.

    Only the generator is modelled: its ceiling, and its half of the time that two cards take.
    """

    def _settle(self, now: float) -> None:
        super()._settle(now)
        for sending in self._sending:
            sending.fate(Fate(0.0, 0.0, 0.0, {sending.port ^ 1: 1.0}))

    def _delay(self, sending: Sending) -> Delay:
        return Delay(FIXED_LATENCY / 2 + l2_bits(sending.size) / self.model.speeds[sending.port] * 1e6, 0.0)

    def _sent(self, traffic: StreamTraffic, fib: Fib, port: int, number: int) -> Sequence[bytes]:
        return (frame_of(traffic, number),)
