"""Keyword that injects faults on a simulated testbed."""

from __future__ import annotations

from typing import Any

from robot.api import logger
from robot.api.deco import keyword, library

from ..session.session import Session
from ..simulation.faults import parse_fault


@library(scope="GLOBAL", version="0.1")
class Faults:
    """Causes faults, to see how a procedure handles them. On a simulated testbed only."""

    @keyword
    def cause_fault(self, session: Session, kind: str, **details: Any) -> None:
        """Cause the fault *kind*: ``Cause Fault    ${BENCH}    link flap    at=0.5    for=0.2``.

        *details* are the keys of a testbed file's ``faults:`` (see docs/faults.md): ``start``: after which start of
        traffic from now on (default 1, the next; 0: at once); ``at``: how many seconds of the testbed's clock later;
        ``every=True``: after each later start again. Fails if the testbed is not simulated.
        """
        fault = parse_fault(kind, **details)
        session.cause_fault(fault)
        logger.info(f"asked for: {fault.model_dump(by_alias=True, exclude_none=True)}")
