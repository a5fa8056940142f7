"""A place that labgrid lends to a run, and how a testbed file asks for it: the key ``lab``."""

from __future__ import annotations

import importlib.util
import os
import re
import time
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from ..config import Config
from ..errors import TestbedError
from ..system import children
from ..units import duration_text
from ..visible import visible
from .process import TestbedProcess
from .waiting_time import Say, Seconds, WaitProgress, silent

LIMIT = 60.0
"""Seconds until the process that holds the place is ready, until it has ended, and that switching power takes."""

POLL = 1.0
"""Seconds between two looks at that process."""

LABGRID = "labgrid"
"""Key of :meth:`LabPlace.record` in the environment record's extra data."""


class LabPlace:
    """A place of labgrid's. :meth:`close` it, or be killed: both give it back."""

    def __init__(self, settings: LabSettings, testbed: str, say: Say = silent) -> None:
        """Wait for the place that *settings* ask for, and acquire it. Raises TestbedError if it stays taken."""
        self.name = self.owner = ""
        self._settings, self._subject, self._say = settings, f"testbed '{testbed}'", say
        self._problem = ""
        if importlib.util.find_spec("labgrid") is None:
            raise TestbedError(f"labgrid is not installed here; expected: {children.remedy('lab')}")
        names = ("LG_HOSTNAME", "LG_USERNAME")
        self._user = {name: os.environ[name] for name in names if name in os.environ}
        asked = {"coordinator": settings.coordinator, "filters": settings.filters(testbed), "user": self._user}
        argv = children.python("lineproof.testbed.lab_holder")
        self._holder = TestbedProcess(LABGRID, argv, asked, limit=LIMIT, grace=LIMIT)
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def _wait(self) -> None:
        progress, said = WaitProgress(self._subject, self._settings.wait, self._say), dict[str, str]()
        while "acquired" not in said:
            ended = {"error": "the process that asks labgrid for it ended"} if self._holder.status() is not None else {}
            said = self._heard(POLL) or ended
            if "error" in said:
                raise TestbedError(f"{self._subject}: {said['error']}")
            if text := said.get("waiting"):
                if progress.is_over:
                    limit = self._settings.wait
                    waited = f"after {duration_text(limit)}" if limit else "and 'wait' is 0"
                    raise TestbedError(
                        f"{self._subject} is not free {waited}:"
                        f" {text}; run later, or give 'wait' of 'lab' in its file more time"
                    )
                progress.note(text)
        self.name, self.owner = said["acquired"], said["owner"]
        waited = f" after {progress.waited:.0f} s" if progress.noted and progress.waited >= 1 else ""
        self._say(f"labgrid's place '{self.name}' at {self._settings.coordinator} acquired{waited}")

    def _heard(self, wait: float = 0.0) -> dict[str, str]:
        return {kind: visible(str(text)) for kind, text in (self._holder.hear(wait) or {}).items()}

    def problems(self) -> tuple[str, ...]:
        """Return why the place must not be used any more: somebody else has it. What else happened is said."""
        while said := self._heard():
            self._say(next(iter(said.values())))
            self._problem = said.get("problem", self._problem)
        if not self._problem and self._holder.problems():
            self._problem = f"the process that holds labgrid's place '{self.name}' ended"
        return (self._problem,) if self._problem else ()

    def record(self) -> dict[str, str]:
        """Return what the environment record says of the place."""
        return {"coordinator": self._settings.coordinator, "place": self.name, "owner": self.owner}

    def power_cycle(self, power: PowerCycleSettings) -> str:
        """Switch its power off and on, by labgrid's own client; returns what was done. Raises TestbedError."""
        argv = ["-x", self._settings.coordinator, "-p", self.name, "power", "cycle", "-t", f"{power.off:g}"]
        argv += ["--name", power.resource] if power.resource is not None else []
        what = f"the power of labgrid's place '{self.name}'"
        try:
            command = children.python("labgrid.remote.client", *argv)
            done = children.run(command, LIMIT + power.off, env=children.environment(self._user))
        except (OSError, children.TimeoutExpired) as error:
            raise TestbedError(f"{what} could not be switched: {error}") from None
        if done.returncode:
            reason = visible((done.stderr or done.stdout).strip().rpartition("\n")[2][-300:])
            raise TestbedError(
                f"{what} could not be switched: {reason}; look with 'labgrid-client -p {self.name} show'"
            )
        return f"{what} was switched off for {power.off:g} s and on again"

    def close(self) -> None:
        """Give the place back. Harmless when repeated."""
        self._holder.request_end()
        until = time.monotonic() + LIMIT
        while self._holder.status() is None and time.monotonic() < until:
            if said := self._heard(POLL):
                self._say(next(iter(said.values())))
        self.problems()
        self._holder.close()


def _with_port(address: str) -> str:
    # 20408 is the port of labgrid's coordinator
    return address if re.search(r":[0-9]+$", address) else f"{address}:20408"


_TagValue = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)]


class PowerCycleSettings(Config):
    """Labgrid's way to switch a router that hangs off and on.

    ``resource``: the name of the place's power resource, where it has several. ``off``: s without power. ``boot``: s
    that the router may take until it answers over SSH again.
    """

    resource: str | None = None
    off: Seconds = 2.0
    boot: Annotated[Seconds, Field(gt=0)] = 300.0


class LabSettings(Config):
    """A place that labgrid lends.

    ``coordinator``: ``host:port``. ``place``: its name; or ``tags`` that it has. ``wait``: s until it must be free;
    0: it must be at once. ``power``: a router that hangs is switched off and on; without it that is never done.
    """

    is_login: ClassVar[bool] = True

    coordinator: Annotated[str, AfterValidator(_with_port)]
    place: str | None = None
    tags: Mapping[str, _TagValue] = Field(default_factory=dict)
    wait: Seconds = 0.0
    power: PowerCycleSettings | None = None

    @field_validator("power", mode="before")
    @classmethod
    def _from_bool(cls, value: Any) -> Any:
        return {True: {}, False: None}[value] if isinstance(value, bool) else value

    @model_validator(mode="after")
    def _check_one_way(self) -> LabSettings:
        if self.place is not None and self.tags:
            raise ValueError("has 'place' and 'tags'; expected one of them")
        return self

    def filters(self, testbed: str) -> dict[str, str]:
        """Return what labgrid's reservation asks for; by default the place that is named as the *testbed*."""
        return dict(self.tags) or {"name": self.place or testbed}
