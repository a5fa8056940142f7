"""Keywords that drive the traffic generator."""

from __future__ import annotations

from robot.api import logger
from robot.api.deco import keyword

from ..core.quantity import Requirement
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

    @keyword(tags=["trials"])
    def put_traffic_on_ports(self, requirement: Requirement) -> None:
        """Put the streams of the sentence on the generator's ports.

        A generator that was lost in an earlier sentence is connected again first, once; log and evidence say so. Fails
        if the generator or the router cannot have such frames, or if the sentence needs a power meter that gives no
        power. Example:
        | ${requirement} =    Read Requirement    imix unidirectional ≥ 95% line rate
        | Put Traffic On Ports    ${requirement}
        """
        traffic = self.shared.session.traffic
        self.shared.session.power.check(requirement)
        try:
            traffic.put_for(requirement)
        finally:
            self.shared.note_simulation()  # the generator may be another one since it was connected again
        if traffic.reconnection.note:
            logger.warn(traffic.reconnection.note)
        profile = requirement.profile
        flows = f"{profile.flows.count} flows" if profile.flows.known else "an unknown number of flows"
        logger.info(f"{profile.name}: mean frame {profile.mean_size:g} bytes with FCS, {flows}")

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
        traffic.check_reachability()
        logger.info(str(traffic.foreign))

    @keyword(tags=["testbed"])
    def release_generator(self) -> None:
        """Stop traffic and release the ports. Harmless when repeated, or without a testbed. Example:
        | Release Generator
        """
        if session := self.shared.own_session:
            session.release_generator()
