"""Keywords that reach the router under test over SSH."""

from __future__ import annotations

from robot.api import logger
from robot.api.deco import keyword, library

from ..counts.telemetry import Telemetry
from ..errors import TestbedError
from ..session.session import Session
from ..traffic.frame_kinds import reason_not_forwarded


@library(scope="GLOBAL", version="0.1")
class RouterShell:
    """Reaches the router under test through SSHLibrary.

    Host keys are checked against the testbed's ``known_hosts`` file; an unknown or another key refuses the connection.
    Every command has a time limit, and a dropped link is an error (SSHLibrary alone reports neither).
    """

    def __init__(self) -> None:
        self._session: Session | None = None

    @keyword
    def connect_router(self, session: Session) -> None:
        """Log in to the router of *session* and read its versions.

        Fails with one sentence if the address does not answer, the host key is unknown or another, or the login is
        refused.
        """
        for name, value in session.router.connect().items():
            logger.info(f"{name}: {value}")
        self._session = session

    @keyword
    def configure_router(self, session: Session) -> None:
        """Set the testbed's addresses, static neighbours and routes on the router; `Restore Router` removes them.

        With ``set_up`` in the testbed file, routes for IPv6, tagged and labelled frames as well.
        """
        session.router.configure()

    @keyword
    def reason_against_traffic(self, session: Session, traffic: str) -> str:
        """Why the router cannot forward *traffic* (``64b vlan``), as a missing kernel module; empty if it can."""
        profile = session.plan.catalogue.profile(traffic.split())
        return reason_not_forwarded(profile, session.router.not_forwarded)

    @keyword
    def restore_router(self, session: Session) -> None:
        """Undo what `Configure Router` changed, then log out. Harmless when repeated."""
        self._session = None
        session.router.restore()

    @keyword
    def run_on_router(self, command: str, limit: float = 10.0) -> str:
        """Run *command* on the router and return its output.

        Fails if it takes longer than *limit* s, the link drops, or its exit status is not 0.
        """
        if self._session is None:
            raise TestbedError("no router is connected; call 'Connect Router' first")
        result = self._session.router.shell(command, limit)
        if result.status != 0:
            raise TestbedError(f"'{command}' ended with status {result.status} on the router: {result.stderr.strip()}")
        return result.stdout

    @keyword
    def read_router_telemetry(self, session: Session) -> Telemetry:
        """The router's counters now, as evidence. Fails if it restarted since the last reading."""
        return session.router.watch.read()
