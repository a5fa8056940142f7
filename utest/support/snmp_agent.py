"""An SNMP agent on loopback, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from typing import Any


class SnmpAgent:
    """Answers to the community ``area`` on UDP ``port``. A subclass has users and values.

    ``builder`` of :meth:`export` makes MIB symbols; *agent* is pysnmp's engine.
    """

    COMMUNITY = "c0mmunity"

    def __init__(self) -> None:
        self.port = 0
        self._ready, self._loop = threading.Event(), asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    def add_users(self, agent: Any) -> None:
        """Users beside the community."""

    def export(self, builder: Any) -> None:
        """The values."""
        raise NotImplementedError

    def _serve(self) -> None:
        from pysnmp.carrier.asyncio.dgram import udp
        from pysnmp.entity import config, engine
        from pysnmp.entity.rfc3413 import cmdrsp, context

        asyncio.set_event_loop(self._loop)
        self._engine = agent = engine.SnmpEngine()
        transport = udp.UdpTransport()
        transport.open_server_mode(("127.0.0.1", 0))
        config.add_transport(agent, udp.DOMAIN_NAME, transport)
        config.add_v1_system(agent, "area", self.COMMUNITY)
        config.add_vacm_user(agent, 2, "area", "noAuthNoPriv", (1, 3, 6), ())
        self.add_users(agent)
        found = context.SnmpContext(agent)
        self.export(found.get_mib_instrum().get_mib_builder())
        cmdrsp.GetCommandResponder(agent, found)

        async def announce() -> None:
            while transport.transport is None:
                await asyncio.sleep(0.01)
            self.port = transport.transport.get_extra_info("sockname")[1]
            self._ready.set()

        self._loop.create_task(announce())
        self._loop.run_forever()

    def close(self) -> None:
        """End it."""
        self._loop.call_soon_threadsafe(self._engine.close_dispatcher)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
