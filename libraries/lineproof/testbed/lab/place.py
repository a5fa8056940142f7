"""A place that labgrid has lent to this run: acquired, watched, power-cycled, and given back."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import queue
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any

from ...errors import TestbedError
from ...json_text import parse_json
from ...system import children
from ...system.identity import state_folder
from ...visible import visible
from ..waiting_time import Say, WaitProgress, in_units, silent
from .holder import CALL_MARGIN, RELEASE_LIMIT
from .settings import LabSettings, PowerCycleSettings

START_LIMIT = 60.0
"""Seconds until the process that holds the place says something: labgrid takes seconds to import."""

POWER_LIMIT = 60.0
"""Seconds that switching may take, beside the time without power."""


LABGRID = "labgrid"
"""Key of :func:`lab_record` in the environment record's extra data."""


def owner_name() -> str:
    """As whom labgrid knows this user, ``host/user``: as ``labgrid-client`` does."""
    host = os.environ.get("LG_HOSTNAME") or socket.gethostname()
    try:
        user = os.environ.get("LG_USERNAME") or getpass.getuser()
    except (OSError, KeyError):  # no account
        user = str(os.getuid())
    return f"{host}/{user}"


class LabPlace:
    """A place of labgrid's. Made by :meth:`acquire`; :meth:`close` it, or be killed: both give it back.

    ``name``: the place's; ``waited``: s until it was acquired; ``story``: a line for each thing that happened to it,
    with its time.
    """

    def __init__(self, settings: LabSettings, subject: str, filters: Mapping[str, str], say: Say) -> None:
        self.settings = settings
        self.name, self.token, self.owner = "", "", owner_name()
        self.waited = 0.0
        self.story: list[str] = []
        self._subject, self._say = subject, say
        self._news: list[str] = []
        self._problem = ""
        self._closed = False
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._environment = _as_owner(self.owner)
        folder = state_folder("lab")
        # a session of its own: Ctrl-C in the terminal reaches Robot only, which then has the place given back
        self._process = children.start(
            children.python("lineproof.testbed.lab.holder"),
            env=children.environment(self._environment),
            stdin=children.PIPE,
            stdout=children.PIPE,
            stderr=children.DEVNULL,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True, name="lab-reader")
        self._reader.start()
        order = {"coordinator": settings.coordinator, "owner": self.owner, "filters": filters, "folder": str(folder)}
        children.send_line(self._process, json.dumps(order))

    @classmethod
    def acquire(cls, settings: LabSettings, testbed: str, say: Say = silent) -> LabPlace:
        """The place that *settings* ask for; waits for it. Raises TestbedError where it is not to be had in time."""
        place = cls(settings, f"testbed '{testbed}'", settings.filters(testbed), say)
        try:
            place._wait()
        except BaseException:
            place.close()
            raise
        return place

    def _wait(self) -> None:
        progress = WaitProgress(self._subject, self.settings.wait, self._say)
        heard = time.monotonic()
        while True:
            answer = self._answer(1.0)
            if answer is None:
                if self._process.poll() is not None or time.monotonic() > heard + START_LIMIT:
                    raise TestbedError(f"{self._subject}: the process that asks labgrid for it did not answer")
                continue
            heard = time.monotonic()
            if "error" in answer:
                raise TestbedError(f"{self._subject}: {answer['error']}")
            if "acquired" in answer:
                self.name, self.token = answer["acquired"], answer["token"]
                self.waited = progress.waited if progress.noted else 0.0
                words = f" after {self.waited:.0f} s" if self.waited >= 1 else ""
                self._tell(f"labgrid's place '{self.name}' at {self.settings.coordinator} acquired{words}")
                return
            if "waiting" in answer:
                why = visible(str(answer["waiting"]))
                if progress.is_over:
                    waited = f"after {in_units(self.settings.wait)}" if self.settings.wait else "and 'wait' is 0"
                    raise TestbedError(
                        f"{self._subject} is not free {waited}: {why}; run later, or give 'wait' of 'lab' in its file"
                        " more time"
                    )
                progress.note(why)

    def problems(self) -> tuple[str, ...]:
        """Why the place must not be used any more: somebody else has it."""
        if not self._closed and self._process.poll() is not None:
            return (f"the process that holds labgrid's place '{self.name}' ended with {self._process.returncode}",)
        return (self._problem,) if self._problem else ()

    def news(self) -> tuple[str, ...]:
        """What happened to the place since this was called last, in words."""
        found, self._news = self._news, []
        return tuple(found)

    def power_cycle(self, power: PowerCycleSettings) -> str:
        """Switch its power off and on, by labgrid's own client; returns what was done. Raises TestbedError."""
        words = ["-x", self.settings.coordinator, "-p", self.name, "power", "cycle", "-t", f"{power.off:g}"]
        words += ["--name", power.resource] if power.resource is not None else []
        what = f"power of labgrid's place '{self.name}'"
        try:
            done = children.run(
                children.python("labgrid.remote.client", *words),
                POWER_LIMIT + power.off,
                env=children.environment(self._environment),
            )
        except (OSError, children.TimeoutExpired) as error:
            self._tell(f"the {what} could not be switched: {error}")
            raise TestbedError(f"the {what} could not be switched: {error}") from None
        if done.returncode:
            reason = visible((done.stderr or done.stdout).strip().rpartition("\n")[2][-300:])
            self._tell(f"the {what} could not be switched: {reason}")
            raise TestbedError(
                f"the {what} could not be switched: {reason}; look with 'labgrid-client -p {self.name} show'"
            )
        self._tell(f"the {what} was switched off for {power.off:g} s and on again")
        return self.story[-1]

    def close(self) -> None:
        """Give the place back. Harmless when repeated."""
        if self._closed:
            return
        self._closed = True
        children.send_line(self._process, "end")
        with contextlib.suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()
        try:
            self._process.wait(RELEASE_LIMIT + CALL_MARGIN)
        except children.TimeoutExpired:
            self._process.kill()
            self._process.wait(5)
            self._tell(f"labgrid's place '{self.name}' was not given back in time; 'lineproof restore' does it")
        self._reader.join(1)
        while (answer := self._answer(0)) is not None:
            if left := answer.get("end"):
                self._tell(visible(str(left)))
            elif "end" in answer and self.name:
                self._note(f"labgrid's place '{self.name}' given back")
        if self._process.stdout and not self._reader.is_alive():
            self._process.stdout.close()

    def _answer(self, seconds: float) -> dict[str, Any] | None:
        with contextlib.suppress(queue.Empty):
            return self._answers.get(timeout=seconds) if seconds else self._answers.get_nowait()
        return None

    def _read(self) -> None:
        for line in self._process.stdout or ():
            with contextlib.suppress(ValueError):
                data = parse_json(line, own=True)
                if "event" in data:
                    self._tell(visible(str(data["event"])))
                elif "returned" in data:
                    self._tell(visible(str(data["returned"])))
                elif "problem" in data:
                    self._problem = visible(str(data["problem"]))
                    self._tell(self._problem)
                else:
                    self._answers.put(data)

    def _note(self, words: str) -> None:
        self.story.append(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {words}")

    def _tell(self, words: str) -> None:
        self._note(words)
        self._news.append(words)
        self._say(words)


def return_left_places(settings: LabSettings) -> tuple[str, ...]:
    """Give back what killed runs of this user have left; a sentence for each. Raises TestbedError."""
    place = LabPlace(settings, f"the labgrid coordinator at {settings.coordinator}", {}, silent)
    try:
        heard = time.monotonic()
        while (answer := place._answer(1.0)) is None or "waiting" in answer:
            if place._process.poll() is not None or time.monotonic() > heard + START_LIMIT:
                break
        if answer is not None and "error" in answer:
            raise TestbedError(str(answer["error"]))
    finally:
        place.close()
    return place.news()


def lab_record(place: LabPlace) -> dict[str, object]:
    """What the environment record says of a place."""
    return {
        "coordinator": place.settings.coordinator,
        "place": place.name,
        "owner": place.owner,
        "reservation": place.token,
        "waited_s": round(place.waited, 1),
    }


def _as_owner(owner: str) -> dict[str, str]:
    host, _, user = owner.partition("/")
    return {"LG_HOSTNAME": host, "LG_USERNAME": user}
