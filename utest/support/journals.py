"""Journals of a router's changes in tests: whose they are, and a run that is killed."""

from __future__ import annotations

from linerate.routers.occasion import Occasion

ROUTER = "192.0.2.1:22"


class Killed(BaseException):
    """SIGKILL, here."""


def occasion(uptime: float | None = 100.0, kind: str = "linux") -> Occasion:
    """This process, now, and a router that runs for *uptime* seconds."""
    return Occasion.now(ROUTER, kind, "SHA256:key", uptime)
