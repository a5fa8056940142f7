"""Keyword that injects faults on a simulated testbed."""

from __future__ import annotations

from typing import Any

from robot.api import logger
from robot.api.deco import keyword

from ..simulation.faults import parse_fault
from .shared import Component


class FaultKeywords(Component):
    """Causes faults, to see how a procedure handles them. On a simulated testbed only."""

    @keyword(tags=["faults"])
    def cause_fault(self, kind: str, **details: Any) -> None:
        """Cause the fault *kind*.

        *details* are the keys of a testbed file's ``faults:`` (see docs/faults.md): ``start``: after which start of
        traffic from now on (default 1, the next; 0: at once); ``at``: how many seconds of the testbed's clock later;
        ``every=True``: after each later start again. Fails if the testbed is not simulated. Example:
        | Cause Fault    link flap    at=0.5    for=0.2
        """
        fault = parse_fault(kind, **details)
        self.shared.session.cause_fault(fault)
        logger.info(f"asked for: {fault.model_dump(by_alias=True, exclude_none=True)}")
