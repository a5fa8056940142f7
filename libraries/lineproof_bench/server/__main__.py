"""The server's process, ``python -m lineproof_bench.server``: its specification comes on standard input."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..backend import Backend
from ..process import on_end, read_specification, ready, refuse
from .control import ControlService
from .habits import ServerHabits
from .loop import TrexServer
from .nic import ServerCard, read_nic_file
from .places import Places
from .request_socket import PortTaken

OpenBackend = tuple[Backend, Callable[[], float], ControlService | None]


def open_backend(specification: Mapping[str, Any]) -> OpenBackend:
    """The backend for *specification*, its clock in s, and the control of its router if it models one.

    Raises ValueError with a sentence for an unknown backend; a backend raises its own errors.
    """
    kind = specification.get("backend")
    if kind == "model":
        from lineproof.simulation.faults import InjectedFault
        from lineproof.simulation.habits import RouterHabits

        from ..clock import Clock
        from ..faults.backend import FaultyBackend
        from ..model.direct_cable import DirectCableModel
        from ..model.injected_loss import LossyModel

        clock = Clock(float(specification.get("clock_speed") or 1.0))
        faults = [InjectedFault.model_validate(row) for row in specification.get("faults") or ()]
        model_class = DirectCableModel if specification.get("bypass") else LossyModel
        model = FaultyBackend(
            lambda clock: model_class.from_specification(specification, clock),
            clock.now,
            faults,
            clock.speed,
            specification.get("remains"),
            RouterHabits.model_validate(specification.get("router_habits") or {}),
        )
        address = str(specification.get("control_token") or ""), int(specification.get("control_port") or 0)
        return model, clock.now, ControlService(model, model, *address)
    if kind == "wire":
        from ..wire import WireBackend, WirePort

        ports = [WirePort(**{"index": index, **row}) for index, row in enumerate(specification["ports"])]
        return WireBackend(ports), time.monotonic, None
    raise ValueError(f"'backend' is {kind!r}; expected 'model' or 'wire'")


def with_nic(specification: Mapping[str, Any]) -> tuple[Mapping[str, Any], ServerCard | None]:
    """The card that the specification's ``nic`` names, and the specification with what the card's file adds to it.

    Raises ConfigError for a file that is wrong.
    """
    if not specification.get("nic"):
        return specification, None
    file, nic = read_nic_file(str(specification["nic"]))
    given = {key: value for key, value in specification.items() if value is not None and value not in ([], {})}
    return {**file.server, **given}, nic


def main() -> None:
    """Read the specification, serve, end."""
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s")
    try:
        specification, nic = with_nic(read_specification())
        backend, now, control = open_backend(specification)
    except Exception as error:
        logging.getLogger("lineproof.server").exception("the backend cannot be opened")
        refuse(f"the embedded server cannot open its backend: {error}")
    try:
        server = TrexServer(
            backend,
            now,
            str(specification.get("host", "127.0.0.1")),
            int(specification.get("rpc_port", 0)),
            int(specification.get("pub_port", 0)),
            control,
            Places.from_specification(specification.get("places") or {}),
            nic,
            ServerHabits.from_specification(specification),
        )
    except PortTaken as error:
        backend.close()
        refuse(str(error))
    on_end(server.stop)
    ready(ready_facts(server, backend, control))
    server.run()


def ready_facts(server: TrexServer, backend: Backend, control: ControlService | None) -> dict[str, Any]:
    """The facts that the parent gets."""
    ports = [
        {
            "index": port.index,
            "mac": port.mac,
            "peer_mac": port.peer_mac,
            "speed_bps": port.speed_bps,
            "driver": port.driver,
            "ipv4": port.ipv4,
            "peer_ipv4": port.peer_ipv4,
            "interface": port.interface,
        }
        for port in backend.ports
    ]
    return {
        "rpc_port": server.rpc_port,
        "pub_port": server.pub_port,
        "control_port": server.control_port or None,
        "control_token": control.token if control else None,
        # of real frames only
        "sender": getattr(backend, "sender", None),
        "ports": ports,
    }


if __name__ == "__main__":
    main()
