"""Keywords that drive the traffic generator."""

from __future__ import annotations

from robot.api import logger
from robot.api.deco import keyword

from ..evidence.document import as_html
from ..evidence.forms import host_document
from .shared import Component


class GeneratorKeywords(Component):
    """Drives Cisco TRex (stateless) through its Python client, which runs in a process of its own."""

    @keyword(tags=["testbed"])
    def connect_generator(self) -> None:
        """Connect to the TRex server and claim its ports.

        Fails with one sentence if no server answers, the server needs another client, another user holds a port, a
        link is down, or a port's speed is not the platform's. Example:
        | Connect Generator
        """
        generator = self.shared.session.generator
        self.shared.progress.work("connecting to the generator")
        try:
            generator.connect()
        finally:
            self.shared.note_simulation()
        if (host := self.shared.session.testbed.host) is not None:
            if host.problem:
                logger.info(f"the generator's host is not read: {host.problem}")
            else:
                logger.info(as_html(host_document(host.facts)), html=True)
        for port in generator.ports:
            logger.info(f"port {port.index}: {port.mac}, {port.speed_text}, {port.driver}")

    @keyword(tags=["testbed"])
    def check_reachability(self) -> None:
        """Send slow traffic in each direction for a second; some of it must come back, whatever the router's speed.

        Then nothing is sent for four seconds: frames that come all the same (spanning tree, ARP, LLDP) are expected in
        trials too, and no surplus.

        Fails with one sentence if a direction carries nothing (cables, addresses, routes, neighbours): that is the
        testbed's fault and must not count as loss. Example:
        | Check Reachability
        """
        traffic = self.shared.session.traffic
        self.shared.progress.work("sending a little traffic in each direction")
        traffic.check_reachability()
        logger.info(str(traffic.foreign))

    @keyword(tags=["testbed"])
    def release_generator(self) -> None:
        """Stop traffic and release the ports. Harmless when repeated, or without a testbed. Example:
        | Release Generator
        """
        if session := self.shared.own_session:
            session.release_generator()
