"""What can be done to traffic that is being sent: new rates, pauses, of a port or of single streams."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .load import factor_of, load_of
from .params import Params, bad, refused
from .ports import Port
from .streams import Stream
from .transmission import Transmission


class Steering:
    """Changes what ports send by *transmission*. Raises RpcError with TRex's words for what cannot be."""

    def __init__(self, transmission: Transmission) -> None:
        self._transmission = transmission

    def update(self, port: Port, params: Params) -> dict[str, Any]:
        """``update_traffic``."""
        port.require("update", "TX", "PAUSE")
        if port.factor is None:
            raise bad("the port has no rate to update")
        load, force = load_of(port.streams.values()), params.boolean("force", False)
        factor = factor_of(params.object("mul"), load, port.description.speed_bps, force, port.factor)
        port.sent = port.multiplied(port.sent, factor / port.factor)
        port.factor = factor
        self._tell(port)
        return {"multiplier": factor}

    def pause(self, port: Port) -> dict[str, Any]:
        """``pause_traffic``."""
        port.require("pause", "TX")
        _check_endless(port)
        self._transmission.pause(port)
        return {}

    def resume(self, port: Port) -> dict[str, Any]:
        """``resume_traffic``."""
        before = port.applied
        self._transmission.resume(port)
        # rates may have changed meanwhile, and single streams are no longer paused
        port.paused = frozenset()
        if port.present != before:
            self._tell(port)
        return {}

    def pause_streams(self, port: Port, params: Params) -> dict[str, Any]:
        """``pause_streams``."""
        chosen = _chosen(port, params, "pause")
        port.require("pause", "TX", "PAUSE")
        _check_endless(port)
        port.paused |= {stream.stream_id for stream in chosen}
        self._tell(port)
        return {}

    def resume_streams(self, port: Port, params: Params) -> dict[str, Any]:
        """``resume_streams``."""
        chosen = _chosen(port, params, "resume")
        port.require("resume", "TX", "PAUSE")
        port.paused -= {stream.stream_id for stream in chosen}
        self._tell(port)
        return {}

    def update_streams(self, port: Port, params: Params) -> dict[str, Any]:
        """``update_streams``."""
        chosen, force, multiplier = _chosen(port, params, "update"), params.boolean("force"), params.object("mul")
        port.require("update", "TX", "PAUSE")
        if multiplier.choice("op", ("abs", "add", "sub")) != "abs":
            raise refused("Must use absolute multiplier for updating stream")
        rates = {
            stream.stream_id: stream.rate(
                factor_of(multiplier, load_of([replace(stream, self_start=True)]), port.description.speed_bps, force)
            )
            for stream in chosen
        }
        pieces = {number: sum(row.stream_id == number for row in port.sent) for number in rates}
        port.sent = tuple(
            replace(row, pps=rates[row.stream_id] / pieces[row.stream_id]) if row.stream_id in rates else row
            for row in port.sent
        )
        self._tell(port)
        return {"multiplier": port.factor}

    def _tell(self, port: Port) -> None:
        # a port that pauses is told when it goes on
        if port.state == "TX":
            port.applied = port.present
            self._transmission.update(port, port.applied)


def _check_endless(port: Port) -> None:
    if any(stream.sends and stream.burst is not None for stream in port.streams.values()):
        raise refused(" pause is supported when all streams are in continues mode ")
    if port.duration is not None:
        raise refused(" pause is supported when duration is not enable is start command ")


def _chosen(port: Port, params: Params, word: str) -> list[Stream]:
    numbers = params.integers("stream_ids")
    for number in numbers:
        if number not in port.streams:
            raise refused(f"{word}_streams: stream {number} does not exists in profile_id(_)")
    if not numbers:
        raise bad(f"please specify streams to {word}")
    return [port.streams[number] for number in dict.fromkeys(numbers)]
