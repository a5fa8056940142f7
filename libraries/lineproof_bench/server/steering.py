"""Changes of traffic that is being sent: new rates and pauses, of a port or of single streams."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .load import factor_of, load_of
from .params import Params, bad_parameter, refused
from .profile import PortProfile
from .streams import ServerStream
from .transmission import Transmission


class Steering:
    """Changes what ports send by *transmission*. Raises RpcError with TRex's words for what is refused."""

    def __init__(self, transmission: Transmission) -> None:
        self._transmission = transmission

    def update(self, profile: PortProfile, params: Params) -> dict[str, Any]:
        """``update_traffic``."""
        profile.require("update", "TX", "PAUSE")
        if profile.factor is None:
            raise bad_parameter("the port has no rate to update")
        load, force = load_of(profile.streams.values()), params.boolean("force", False)
        factor = factor_of(params.object("mul"), load, profile.description.speed_bps, force, profile.factor)
        profile.sent = profile.multiplied(profile.sent, factor / profile.factor)
        profile.factor = factor
        self._apply(profile)
        return {"multiplier": factor}

    def pause(self, profile: PortProfile) -> dict[str, Any]:
        """``pause_traffic``."""
        profile.require("pause", "TX")
        _check_endless(profile)
        self._transmission.pause(profile)
        return {}

    def resume(self, profile: PortProfile) -> dict[str, Any]:
        """``resume_traffic``."""
        before = profile.applied
        self._transmission.resume(profile)
        # rates may have changed during the pause, and single streams are no longer paused
        profile.paused = frozenset()
        if profile.present != before:
            self._apply(profile)
        return {}

    def pause_streams(self, profile: PortProfile, params: Params) -> dict[str, Any]:
        """``pause_streams``."""
        chosen = _chosen(profile, params, "pause")
        profile.require("pause", "TX", "PAUSE")
        _check_endless(profile)
        profile.paused |= {stream.stream_id for stream in chosen}
        self._apply(profile)
        return {}

    def resume_streams(self, profile: PortProfile, params: Params) -> dict[str, Any]:
        """``resume_streams``."""
        chosen = _chosen(profile, params, "resume")
        profile.require("resume", "TX", "PAUSE")
        profile.paused -= {stream.stream_id for stream in chosen}
        self._apply(profile)
        return {}

    def update_streams(self, profile: PortProfile, params: Params) -> dict[str, Any]:
        """``update_streams``."""
        chosen, force, multiplier = _chosen(profile, params, "update"), params.boolean("force"), params.object("mul")
        profile.require("update", "TX", "PAUSE")
        if multiplier.choice("op", ("abs", "add", "sub")) != "abs":
            raise refused("Must use absolute multiplier for updating stream")
        rates = {
            stream.stream_id: stream.rate(
                factor_of(multiplier, load_of([replace(stream, self_start=True)]), profile.description.speed_bps, force)
            )
            for stream in chosen
        }
        pieces = {number: sum(row.stream_id == number for row in profile.sent) for number in rates}
        profile.sent = tuple(
            replace(row, pps=rates[row.stream_id] / pieces[row.stream_id]) if row.stream_id in rates else row
            for row in profile.sent
        )
        self._apply(profile)
        return {"multiplier": profile.factor}

    def _apply(self, profile: PortProfile) -> None:
        # a paused port takes the new rates when it resumes
        if profile.state == "TX":
            profile.applied = profile.present
            self._transmission.update(profile, profile.applied)


def _check_endless(profile: PortProfile) -> None:
    if any(stream.sends and stream.burst is not None for stream in profile.streams.values()):
        raise refused(" pause is supported when all streams are in continues mode ")
    if profile.duration is not None:
        raise refused(" pause is supported when duration is not enable is start command ")


def _chosen(profile: PortProfile, params: Params, word: str) -> list[ServerStream]:
    numbers = params.integers("stream_ids")
    for number in numbers:
        if number not in profile.streams:
            raise refused(f"{word}_streams: stream {number} does not exists in profile_id({profile.name})")
    if not numbers:
        raise bad_parameter(f"please specify streams to {word}")
    return [profile.streams[number] for number in dict.fromkeys(numbers)]
