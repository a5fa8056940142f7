"""The keyword library ``lineproof.robot.Faults``: for suites that try what a fault does to a verdict."""

from __future__ import annotations

from typing import Any

from robot.api import logger
from robot.api.deco import keyword, library
from robot.libraries.BuiltIn import BuiltIn

from .. import __version__
from ..simulation import parse_fault


@library(scope="GLOBAL", version=__version__)
class Faults:
    """Causes faults, to see how a procedure handles them. On a simulated testbed only."""

    @keyword(tags=["faults"])
    def cause_fault(self, kind: str, **details: Any) -> None:
        """Cause the fault *kind* on the testbed that is open.

        *details* are the keys of a testbed file's ``faults:`` (see docs/faults.md): ``start``: after which start of
        traffic from now on (default 1, the next; 0: at once); ``at``: how many seconds of the testbed's clock later;
        ``every=True``: after each later start again. Fails if the testbed is not simulated. Example:
        | Cause Fault    link flap    at=0.5    for=0.2
        """
        fault = parse_fault(kind, **details)
        lineproof: Any = BuiltIn().get_library_instance("Lineproof")
        lineproof.session.cause_fault(fault)
        logger.info(f"asked for: {fault.model_dump(by_alias=True, exclude_none=True)}")
