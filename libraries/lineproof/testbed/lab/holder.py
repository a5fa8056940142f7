"""The process that has a place of labgrid's for a run: ``python -m lineproof.testbed.lab.holder``.

It is told what to reserve in a line of JSON, reports in lines of JSON, and gives the place back when it is told to, or
when its input ends because the run was killed. A process of its own, so that gRPC's threads and labgrid's own signal
handlers are in nobody's way.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import BREAKDOWN_ERRORS, in_words
from ...system.identity import identify
from ...system.installed import remedy
from .notes import LabNote, left_notes
from .refusals import CoordinatorLost, Refused

MISSING = "labgrid is not installed here"

POLL = 0.5
"""Seconds between two looks at a reservation that waits, and at the place that is had."""

KEEP_INTERVAL = 15.0
"""Seconds between two calls that keep the reservation, which else expires after a minute."""

RETRY = 1.0
"""Seconds between two tries to reach a coordinator that was lost."""

AFTER_RESTART = 8.0
"""Seconds that who waits leaves to those who had places, after a coordinator that forgot all has come back."""

RELEASE_LIMIT = 10.0
"""Seconds that giving back may take."""

CALL_MARGIN = 15.0
"""Seconds beside these that a call to the coordinator, and the end of the process, may take."""

KILLED_GRACE = 3.0
"""Seconds after a run was killed until its place is given back: what it has started ends meanwhile."""


def report(**words: object) -> None:
    """Write a line; nobody may read on."""
    try:
        sys.stdout.write(json.dumps(words) + "\n")
        sys.stdout.flush()
    except (OSError, ValueError):
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  (until the process ends)


class Ended(Exception):
    """The run needs no place any more. *killed*: it did not say so."""

    def __init__(self, killed: bool) -> None:
        super().__init__()
        self.killed = killed


@dataclass
class Holder:
    """Has one place of the *coordinator* at *address*, which *filters* describe, as *owner*. *folder*: of the notes."""

    coordinator: Any
    address: str
    owner: str
    filters: Mapping[str, str]
    folder: Path
    commands: asyncio.Queue[bool] = field(default_factory=asyncio.Queue)
    note: LabNote | None = None
    lost_since: float | None = None
    kept: float = 0.0

    async def run(self) -> None:
        """Until it is told to end."""
        killed = False
        try:
            await self.coordinator.connect()
            await self.return_leftovers()
            await self.acquire()
            await self.hold()
        except Ended as ended:
            killed = ended.killed
        if killed:
            await asyncio.sleep(KILLED_GRACE)
        report(end=await self.give_back())
        await self.coordinator.close()

    async def return_leftovers(self) -> None:
        """Give back what killed runs have left."""
        for note in left_notes(self.folder, self.address):
            try:
                returned = await self.coordinator.give_back(note.place, note.owner, note.token)
            except Refused:
                continue  # another run is at it
            if returned:
                report(returned=f"gave back the place '{note.place}', left by a run that was killed")
            note.remove(self.folder)

    async def acquire(self) -> None:
        """Reserve and acquire a place; says what is waited for."""
        while True:
            try:
                if self.coordinator.lost:
                    await self.coordinator.connect()
                    await self.pause(AFTER_RESTART)
                place = await self._allocated()
                # before it is had: a note that says too much does no harm
                self._write(place=place)
                await self.coordinator.acquire(place)
            except CoordinatorLost as error:
                report(waiting=str(error))
                self._forget()
                await self.pause(RETRY)
            except Refused as error:
                report(waiting=f"the coordinator refuses: {error}")
                await self.pause(RETRY)
            else:
                self.kept = time.monotonic()
                report(acquired=place, token=self._token)
                return

    @property
    def _token(self) -> str:
        return self.note.token if self.note else ""

    @property
    def _place(self) -> str:
        return self.note.place if self.note else ""

    def _write(self, token: str | None = None, place: str = "") -> None:
        if token is not None:
            self._forget()
            self.note = LabNote(self.address, self.owner, token, place, identify(os.getpid()))
        elif self.note is not None:
            self.note = replace(self.note, place=place)
        if self.note is not None:
            self.note.write(self.folder)

    def _forget(self) -> None:
        if self.note is not None:
            self.note.remove(self.folder)
        self.note = None

    async def _allocated(self) -> str:
        """The place that the reservation gets, once it does."""
        while True:
            if self.note is None:
                self._write(token=await self.coordinator.reserve(self.filters))
            try:
                place: str = await self.coordinator.allocated(self._token)
            except Refused:  # it expired: this process did not run for a minute
                self._forget()
                continue
            if place:
                return place
            report(waiting=await self._busy_words())
            await self.pause(POLL)

    async def _busy_words(self) -> str:
        """Who has what is waited for. Ends the process if there is nothing to wait for."""
        places = await self.coordinator.places()
        suiting = [place for place in places if place.suits(self.filters)]
        wanted = ", ".join(f"{key}={text}" for key, text in self.filters.items())
        if not suiting:
            known = ", ".join(sorted(place.name for place in places)) or "none"
            raise LookupError(f"the labgrid coordinator at {self.address} has no place with {wanted}; known: {known}")
        rows = [f"{each.name} is {f'had by {each.owner}' if each.owner else 'reserved'}" for each in suiting]
        return f"labgrid's place with {wanted} ({'; '.join(rows[:8])}{'; …' * (len(rows) > 8)})"

    async def hold(self) -> None:
        """Keep the place, and report what becomes of it."""
        while True:
            await self.pause(RETRY if self.lost_since else POLL)
            if self.note is None:
                continue  # it was taken
            again = False
            try:
                if self.coordinator.lost:
                    self._note_loss()
                    await self.coordinator.connect()
                    again = await self._acquire_again()
                elif time.monotonic() > self.kept + KEEP_INTERVAL:
                    self.kept = time.monotonic()
                    await self.coordinator.allocated(self._token)
                await self._look()
                self._note_return(again)
            except CoordinatorLost:
                self._note_loss()
            except Refused as error:
                report(event=f"the labgrid coordinator refuses to keep the reservation: {error}")

    def _note_loss(self) -> None:
        if self.lost_since is None:
            self.lost_since = time.monotonic()
            report(
                event=f"the labgrid coordinator at {self.address} no longer answers; the run goes on with the place"
                f" '{self._place}'"
            )

    def _note_return(self, again: bool) -> None:
        """The coordinator answers, perhaps since just now. *again*: the place was acquired again."""
        since, self.lost_since = self.lost_since, None
        if since is not None:
            words = f"; the run acquired the place '{self._place}' again" if again else ""
            report(event=f"the labgrid coordinator answers again after {time.monotonic() - since:.0f} s{words}")

    async def _acquire_again(self) -> bool:
        """Acquire the place of a coordinator that was started again, and has forgotten who had what; whether it was."""
        place = self._place
        if any(each.name == place and each.owner for each in await self.coordinator.places()):
            return False
        try:
            token = await self.coordinator.reserve({"name": place})
            if await self.coordinator.allocated(token) == place:
                self._write(token=token, place=place)
                await self.coordinator.acquire(place)
                return True
            await self.coordinator.cancel(token)
        except Refused:
            pass  # somebody was faster, which _look() sees
        return False

    async def _look(self) -> None:
        """Return whether the place is still ours."""
        place = self._place
        found = next((each for each in await self.coordinator.places() if each.name == place), None)
        if found is not None and found.owner == self.owner and found.reservation == self._token:
            return
        who = "is deleted" if found is None else f"is had by {found.owner}" if found.owner else "was released"
        report(problem=f"labgrid's place '{place}' was taken from this run: it {who} now")
        # whatever its user does with the place now is not this run's to undo
        await self.coordinator.cancel(self._token)
        self._forget()

    async def give_back(self) -> str:
        """Give everything back; returns "" or what stays, in words."""
        if self.note is None:
            return ""
        until = time.monotonic() + RELEASE_LIMIT
        while True:
            try:
                if self.coordinator.lost:
                    await self.coordinator.connect()
                await self.coordinator.give_back(self._place, self.owner, self._token)
            except (CoordinatorLost, Refused) as error:
                if time.monotonic() < until:
                    await asyncio.sleep(POLL)
                    continue
                return (
                    f"labgrid's place '{self._place}' could not be given back: {error}; the next run does it, or"
                    " 'lineproof restore'"
                )
            self._forget()
            return ""

    async def pause(self, seconds: float) -> None:
        """Wait for *seconds*. Raises Ended if the run needs no place any more."""
        try:
            killed = await asyncio.wait_for(self.commands.get(), seconds)
        except TimeoutError:
            return
        raise Ended(killed)


async def _work(order: dict[str, Any]) -> None:
    try:
        from .coordinator import Coordinator
    except ImportError:
        report(error=f"{MISSING}; expected: {remedy('lab')}")
        return
    holder = Holder(
        Coordinator(order["coordinator"]),
        order["coordinator"],
        order["owner"],
        order["filters"],
        Path(order["folder"]),
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGQUIT):
        loop.add_signal_handler(number, holder.commands.put_nowait, False)
    threading.Thread(target=_read_input, args=(loop, holder.commands), daemon=True).start()
    try:
        if order["filters"]:
            await holder.run()
        else:
            await holder.coordinator.connect()
            await holder.return_leftovers()
            report(end="")
    except (CoordinatorLost, Refused) as error:
        report(error=f"{error}; is it started, and is 'coordinator' in the testbed's file right?")
    except BREAKDOWN_ERRORS as error:
        report(error=str(error.args[0]) if isinstance(error, LookupError) and error.args else in_words(error))
        await holder.give_back()


def _read_input(loop: asyncio.AbstractEventLoop, commands: asyncio.Queue[bool]) -> None:
    """Tell the holder when its input ends, or a line of it says so."""
    told = sys.stdin.readline()
    loop.call_soon_threadsafe(commands.put_nowait, not told)


def main() -> None:
    """Until the place was given back."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    asyncio.run(_work(json.loads(sys.stdin.readline())))


if __name__ == "__main__":
    main()
