"""What a run asks of a labgrid coordinator, through labgrid's own client session. Only this module imports labgrid.

For the process of :mod:`.holder` alone: gRPC has threads, which Robot's process shall not have.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from labgrid.remote.client import ClientSession, ServerError
from labgrid.remote.common import ReservationState
from labgrid.remote.generated import labgrid_coordinator_pb2 as messages

from .refusals import CoordinatorLost, Refused

CALL_LIMIT = 10.0
"""Seconds for a coordinator to answer."""

_LOST = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


@dataclass(frozen=True, slots=True)
class PlaceState:
    """A place of the coordinator. ``owner``: who has acquired it, ``host/user``; ``reservation``: its token."""

    name: str
    owner: str
    reservation: str
    tags: Mapping[str, str]

    def suits(self, filters: Mapping[str, str]) -> bool:
        """Return whether a reservation with these *filters* may get it."""
        return (filters.items() - {("name", self.name)}) <= self.tags.items()


class Coordinator:
    """A connection to the coordinator at *address*, as ``LG_HOSTNAME/LG_USERNAME`` of the environment."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._session: Any = None

    @property
    def lost(self) -> bool:
        """Whether the connection has ended."""
        return self._session is None or self._session.stopping.is_set()

    async def connect(self) -> None:
        """Connect, again if it was lost. Raises CoordinatorLost."""
        await self.close()
        session = ClientSession(self._address, asyncio.get_running_loop())
        try:
            await asyncio.wait_for(session.start(), CALL_LIMIT)
        except (ServerError, TimeoutError) as error:
            self._session = session
            await self.close()
            raise CoordinatorLost(f"no labgrid coordinator answers at {self._address}") from error
        self._session = session

    async def close(self) -> None:
        """Disconnect. Harmless when repeated."""
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(Exception, asyncio.CancelledError):
                session.stopping.set()
                await asyncio.wait_for(session.stop(), 2)
            with contextlib.suppress(Exception, asyncio.CancelledError):
                await asyncio.wait_for(session.close(), 2)

    async def places(self) -> tuple[PlaceState, ...]:
        """All places."""
        found = await self._call("GetPlaces", messages.GetPlacesRequest())
        return tuple(
            PlaceState(place.name, place.acquired, place.reservation, dict(place.tags)) for place in found.places
        )

    async def reserve(self, filters: Mapping[str, str]) -> str:
        """A new reservation; its token. It expires after a minute without :meth:`allocated`."""
        main = messages.Reservation.Filter(filter=dict(filters))
        found = await self._call("CreateReservation", messages.CreateReservationRequest(filters={"main": main}))
        return str(found.reservation.token)

    async def allocated(self, token: str) -> str:
        """The place that the reservation has by now, "" while it waits; keeps it. Raises Refused if it has ended."""
        found = (await self._call("PollReservation", messages.PollReservationRequest(token=token))).reservation
        state = ReservationState(found.state)
        if state in (ReservationState.expired, ReservationState.invalid):
            raise Refused(f"the reservation is {state.name}")
        return str(found.allocations["main"]) if "main" in found.allocations else ""

    async def acquire(self, place: str) -> None:
        """Acquire *place*. Raises Refused."""
        await self._call("AcquirePlace", messages.AcquirePlaceRequest(placename=place))

    async def give_back(self, place: str, owner: str, token: str) -> bool:
        """Release *place* if *owner* has it by the reservation *token*, and end that; whether it was released."""
        ours = any(
            each.name == place and each.owner == owner and each.reservation == token for each in await self.places()
        )
        if ours:
            await self._call("ReleasePlace", messages.ReleasePlaceRequest(placename=place, fromuser=owner))
        await self.cancel(token)
        return ours

    async def cancel(self, token: str) -> None:
        """End a reservation, which would keep its place from others for another minute. Harmless when repeated."""
        with contextlib.suppress(Refused):
            await self._call("CancelReservation", messages.CancelReservationRequest(token=token))

    async def _call(self, name: str, request: Any) -> Any:
        if self.lost:
            raise CoordinatorLost(f"the labgrid coordinator at {self._address} no longer answers")
        try:
            return await getattr(self._session.stub, name)(request, timeout=CALL_LIMIT)
        except grpc.aio.AioRpcError as error:
            if error.code() in _LOST or self.lost:
                raise CoordinatorLost(f"the labgrid coordinator at {self._address} no longer answers") from error
            raise Refused(error.details() or error.code().name) from error
