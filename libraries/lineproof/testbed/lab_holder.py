"""Has one of labgrid's places for a run: a process of the testbed, as :mod:`.process` starts them.

Prints lines of JSON, ``{KIND: TEXT}``, and gives the place back when its input ends, however the run ended: labgrid
itself keeps a place for a client that has gone. gRPC has threads, which Robot's process shall not have, so this is a
process of its own, and the only module that imports labgrid.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

import grpc
from labgrid.remote.client import ClientSession, ServerError
from labgrid.remote.generated import labgrid_coordinator_pb2 as messages

POLL = 0.5
"""Seconds between two looks at a reservation that waits, at the place, and for a coordinator that was lost."""

CALL_LIMIT = 10.0
"""Seconds for a coordinator to answer, and to take a place back."""

_FAILURES = (grpc.aio.AioRpcError, ServerError, TimeoutError)


def report(**said: object) -> None:
    """Write a line; nobody may read on."""
    with contextlib.suppress(OSError):
        print(json.dumps(said), flush=True)


class _Holder:
    """Has one place of the coordinator at *address*, which *filters* describe."""

    def __init__(self, address: str, filters: Mapping[str, str]) -> None:
        self._address, self._filters = address, dict(filters)
        self._session: Any = None
        self._place = self._token = ""

    async def work(self) -> None:
        """Acquire a place and watch it. Returns once somebody has taken it away."""
        await self._connect()
        await self._acquire()
        while self._owner(self._place) == self._user and not self._session.stopping.is_set():
            await asyncio.sleep(POLL)
        if self._session.stopping.is_set():
            lost = f"the labgrid coordinator at {self._address} no longer answers"
            report(event=f"{lost}; the run goes on with the place '{self._place}'")
            await asyncio.Event().wait()  # until the run ends
        known, who = self._place in self._session.places, self._owner(self._place)
        state = f"is had by {who}" if who else "was released" if known else "is deleted"
        report(problem=f"labgrid's place '{self._place}' was taken from this run: it {state} now")
        self._place = ""  # whatever its user does with it is not this run's to undo

    async def release(self) -> None:
        """Give everything back, or report what stays."""
        until = time.monotonic() + CALL_LIMIT
        while self._place or self._token:
            try:
                if self._session.stopping.is_set():
                    await self._connect()
                if self._place:
                    await self._call("ReleasePlace", placename=self._place, fromuser=self._user)
                await self._cancel_reservation()
                self._place = ""
            except _FAILURES as error:
                if time.monotonic() > until:
                    message = f"labgrid's place '{self._place}' could not be given back: {_words(error)}"
                    report(event=f"{message}; once it answers: labgrid-client -p {self._place} release")
                    break
                await asyncio.sleep(POLL)
        await self._disconnect()

    @property
    def _user(self) -> str:
        return f"{self._session.gethostname()}/{self._session.getuser()}"

    def _owner(self, place: str) -> str:
        return str(getattr(self._session.places.get(place), "acquired", "") or "")

    async def _connect(self) -> None:
        await self._disconnect()
        self._session = ClientSession(self._address, asyncio.get_running_loop())
        try:
            await asyncio.wait_for(self._session.start(), CALL_LIMIT)
        except (ServerError, TimeoutError):
            self._session.stopping.set()
            raise ServerError(f"no labgrid coordinator answers at {self._address}") from None

    async def _disconnect(self) -> None:
        if self._session is not None:
            self._session.stopping.set()
            for step in (self._session.stop, self._session.close):
                with contextlib.suppress(Exception, asyncio.CancelledError):
                    await asyncio.wait_for(step(), 2)

    async def _call(self, name: str, **fields: Any) -> Any:
        request = getattr(messages, f"{name}Request")(**fields)
        return await getattr(self._session.stub, name)(request, timeout=CALL_LIMIT)

    async def _acquire(self) -> None:
        """Wait in labgrid's queue, where a reservation that is not polled expires after a minute."""
        main = messages.Reservation.Filter(filter=self._filters)
        self._token = (await self._call("CreateReservation", filters={"main": main})).reservation.token
        while True:
            allocations = (await self._call("PollReservation", token=self._token)).reservation.allocations
            why = ""
            if place := str(allocations.get("main", "")):
                try:
                    self._place = place  # before it is had: what this process may have is given back
                    await self._call("AcquirePlace", placename=place)
                    break
                except grpc.aio.AioRpcError as error:  # a resource of it belongs to another place, too
                    self._place, why = "", f"the coordinator refuses: {error.details()}"
            report(waiting=why or self._users())
            await asyncio.sleep(POLL)
        await self._cancel_reservation()
        await self._session.sync_with_coordinator()
        report(acquired=place, owner=self._user)

    async def _cancel_reservation(self) -> None:
        """End the reservation, which would keep the place from others for a minute after its release."""
        if self._token:
            with contextlib.suppress(grpc.aio.AioRpcError):
                await self._call("CancelReservation", token=self._token)
            self._token = ""

    def _users(self) -> str:
        """Return who has what is waited for. Raises LookupError if there is nothing to wait for."""
        places = self._session.places.values()
        wanted = ", ".join(f"{key}={text}" for key, text in self._filters.items())
        suiting = [one for one in places if self._filters.items() <= {**one.tags, "name": one.name}.items()]
        if not suiting:
            known = ", ".join(sorted(one.name for one in places)) or "none"
            raise LookupError(f"the labgrid coordinator at {self._address} has no place with {wanted}; known: {known}")
        users = [f"{one.name} is {f'had by {one.acquired}' if one.acquired else 'reserved'}" for one in suiting[:8]]
        return f"labgrid's place with {wanted} ({'; '.join(users)})"


def _words(error: BaseException) -> str:
    if isinstance(error, grpc.aio.AioRpcError):
        return str(error.details() or error.code().name)
    return " ".join(map(str, error.args)) or "it does not answer"


async def _main(address: str, filters: Mapping[str, str]) -> None:
    loop, ended, run = asyncio.get_running_loop(), asyncio.Event(), os.getppid()

    def end() -> None:
        loop.remove_reader(0)
        ended.set()

    loop.add_reader(0, end)
    for number in (signal.SIGTERM, signal.SIGQUIT):
        loop.add_signal_handler(number, end)
    holder = _Holder(address, filters)
    work = asyncio.create_task(holder.work())
    await asyncio.wait((work, asyncio.create_task(ended.wait())), return_when=asyncio.FIRST_COMPLETED)
    if work.done() and (error := work.exception()):
        report(error=_words(error))
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    if os.getppid() != run:
        await asyncio.sleep(3.0)  # the run was killed: what it has started ends meanwhile
    await holder.release()


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    asked = json.loads(sys.stdin.buffer.readline())
    os.environ.update(asked["user"])
    report(ready=True)
    asyncio.run(_main(asked["coordinator"], asked["filters"]))
