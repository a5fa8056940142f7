"""Cisco TRex as a :class:`~linerate.generators.base.Generator`: each trial told to the client's process, counts back.

Byte counts: TRex's port counters hold the 4-byte FCS whatever the network card counts (its drivers' statistics are
"fixed" by 4 bytes per frame where the card leaves it out), and so do the embedded server's: passed on as they are.
"""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...counts.step_down import StepDown
from ...counts.trial import Load, Outcome
from ...errors import TestbedError
from ...system.cpu_steal import Ticks
from ...traffic.profiles import Profile
from ..base import Direction, GeneratorPort, Probe
from ..streams import bursts, commonest, probe_group, probe_size, side_by_side, streams
from .client_choice import PYPI, Fetch, choose, mismatch
from .client_process import ClientError, ClientProcess
from .counts import outcome
from .destinations import check_addressees
from .layer_check import check_layers, line_use
from .live import TrexLive, step_down
from .pattern_checks import check_pattern, check_steady, due, is_steady
from .port_claims import Note, note, notes
from .probe import ServerFacts, ask, listens

IMPORT_LIMIT = 30.0
"""Seconds for the client's process to import its library, on a slow and busy machine."""

CALL_LIMIT = 20.0
"""Seconds for any command but a trial; the client gives each of the server's answers 5."""


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "linerate"


@dataclass(frozen=True, slots=True)
class TrexSettings:
    """Where the server is and how it is used, as a testbed file says.

    ``server`` a name or address; ``force`` takes ports that somebody else holds; ``clock_speed`` seconds of the testbed's
    clock per second of the wall (1 but for a simulated testbed); ``drain`` the wait for missing frames after the last was
    sent, s of the testbed's clock (RFC 2544 23: 2 s); a trial that misses none does not wait. ``client``: which one, see
    :func:`.choice.choose`.
    """

    server: str
    sync_port: int = 4501
    async_port: int = 4500
    ports: tuple[int, ...] = (0, 1)
    force: bool = False
    username: str = field(default_factory=_user)
    client: str = ""
    clock_speed: float = 1.0
    drain: float = 2.0

    @property
    def address(self) -> str:
        """``server:port``, for messages."""
        return f"{self.server}:{self.sync_port}"


class TrexGenerator:
    """A connected TRex server whose ports are held. Connects when made; raises TestbedError and leaves nothing behind."""

    def __init__(
        self, settings: TrexSettings, process: ClientProcess | None = None, fetch: Fetch | None = None
    ) -> None:
        """Connect. *process*: one of the PyPI client already started, to save its 1 to 2 s of imports; this ends it.

        *fetch* gets the client that a server ships, where the settings or the server want that one.
        """
        self.settings = settings
        self._fetch = fetch
        self._directions: tuple[Direction, ...] = ()
        self._profile: Profile | None = None
        self._streams: dict[str, list[dict[str, Any]]] = {}
        self._groups: dict[str, int] = {}
        self._speeds: dict[int, float] = {}
        self._versions: dict[str, str] = {}
        self._handlers: dict[str, str] = {}
        self._note: Note | None = None
        self._process: ClientProcess | None = process
        try:
            if not settings.ports:
                raise TestbedError("a TRex generator needs at least one port; expected for example 'ports: [0, 1]'")
            self._connect(process)
        except BaseException:
            self.close()
            raise

    def _connect(self, process: ClientProcess | None = None) -> None:
        setting = self.settings
        if process is None and setting.client == PYPI:
            process = ClientProcess()  # imports while the server is being asked
        self._process = process
        server = ask(setting.server, setting.sync_port)
        folder = choose(server, PYPI if process else setting.client, self._fetch)
        if folder is None:
            listens(setting.server, setting.async_port)
        self._process = process or ClientProcess(folder)
        self._open(server, folder)

    def _open(self, server: ServerFacts, folder: Path | None) -> None:
        setting = self.settings
        try:
            self._versions = self._call(
                "connect",
                IMPORT_LIMIT + CALL_LIMIT,
                server=setting.server,
                sync_port=setting.sync_port,
                async_port=setting.async_port,
                username=setting.username,
            )
            self._take_ports()
        except ClientError as error:
            if error.kind == "install":
                raise TestbedError(
                    f"{error}; expected trex-stl-lib 0.3 and what it requires, which every client here needs:"
                    " pip install trex-stl-lib==0.3"
                ) from error
            if error.kind == "connect" and "mismatch" in str(error).lower():
                raise mismatch(server, folder, str(error)) from error
            if error.kind == "connect" and "subscriber" in str(error):
                raise TestbedError(
                    f"the TRex server at {setting.address} answers, but publishes nothing that trex-stl-lib 0.3"
                    f" understands at port {setting.async_port}; fix 'async_port' in the testbed file ({error})"
                ) from error
            if error.kind == "taken":
                ours = "; ".join(f"port {item.ports}: {item}" for item in notes(setting.address)[1])
                raise TestbedError(
                    f"a port of the TRex server at {setting.address} is taken: {error}"
                    + (f" (runs of your own hold {ours})" if ours else " (TRex does not tell since when)")
                    + "; have it released there, or set 'force: true' for the generator in the testbed file to take it"
                    " away"
                ) from error
            raise TestbedError(f"the TRex server at {setting.address}: {error}") from error

    def _take_ports(self) -> None:
        """Hold the ports; what had to be done for it becomes part of the evidence (:attr:`versions`)."""
        setting, numbers = self.settings, list(self.settings.ports)
        dead, _ = notes(setting.address)
        left = {port: handler for item in dead for port, handler in item.handlers.items() if int(port) in numbers}
        owners = {item["index"]: item["owner"] for item in self._call("ports", ports=numbers)}
        # an earlier connection of this very generator has the last word on its ports
        self._handlers = self._call("acquire", ports=numbers, force=setting.force, former={**left, **self._handlers})
        self._forget()
        self._note = note(setting.address, self._handlers)
        held = {port: owner for port, owner in owners.items() if owner}
        for item in dead:
            item.remove()
        if returned := {port: owner for port, owner in held.items() if str(port) in left}:
            runs = "; ".join(str(item) for item in dead)
            self._versions["leftover"] = f"ports {_named(returned)} given back for a run that was killed: {runs}"
        if setting.force:
            self._versions["force"] = f"allowed; held when the run began: {_named(held) or 'none'}"

    def _forget(self) -> None:
        if self._note is not None:
            self._note.remove()
            self._note = None

    # -- Generator -----------------------------------------------------------------------------------------------------

    @property
    def ports(self) -> tuple[GeneratorPort, ...]:
        """The ports held, as they are now. Raises TestbedError."""
        found = self._ask("ports", ports=list(self.settings.ports))
        return tuple(
            GeneratorPort(
                item["index"],
                item["mac"],
                item["speed_bps"],
                item["link_up"],
                item["driver"],
                item.get("pci", ""),
                item.get("description", ""),
                item.get("destination", ""),
                None if item.get("measures") is None else frozenset(item["measures"]),
            )
            for item in found
        )

    @property
    def client_pid(self) -> int | None:
        """The id of the client's process; None once closed."""
        return None if self._process is None else self._process.pid

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of server, client, protocol and the libraries in the client's process."""
        return dict(self._versions)

    def prepare(self, profile: Profile, directions: tuple[Direction, ...], probe: Probe | None = None) -> None:
        """Put the profile's streams on the sending ports, replacing what was there. Raises TestbedError.

        *probe* frames are part of the load asked for: TRex takes their fixed rate off before it multiplies the rest.
        """
        strangers = {port for direction in directions for port in (direction.tx_port, direction.rx_port)} - set(
            self.settings.ports
        )
        if strangers or not directions:
            named = ", ".join(str(port) for port in sorted(strangers)) or "none"
            raise TestbedError(f"ports {named} are not among those held: {', '.join(map(str, self.settings.ports))}")
        self._directions = ()
        try:
            data = {
                str(direction.tx_port): [item.to_json() for item in streams(profile, direction, probe)]
                for direction in directions
            }
        except ValueError as error:
            raise TestbedError(f"{profile.name}: {error}") from None
        if profile.program is not None:
            check_addressees(profile, directions, self.ports)
        self._ask("prepare", streams=data)
        self._streams = data
        said = self._ask("rates", ports=[direction.tx_port for direction in directions])
        check_layers(profile, said, (probe, _probe_bytes(profile)) if probe else None)
        self._speeds = {int(port): rate["speed_bps"] for port, rate in said.items()}
        self._directions, self._profile = directions, profile
        self._groups = {str(direction.tx_port): probe_group(direction) for direction in directions} if probe else {}

    def measure(self, load: Load, duration: float) -> Outcome:
        """One trial of *duration* s of the testbed's clock. Raises TestbedError where there is no outcome."""
        self._check_fixed(load)
        check_pattern(self._profile, self._directions, load, duration, self._speeds)
        before, told = Ticks.read(), self._trial(load, duration)
        answer = self._ask("trial", self._trial_limit(duration), **told)
        found = outcome(answer, load, duration, self._directions, self.settings.clock_speed, told["intended"])
        readings = {**found.readings, "cpu_steal": Ticks.read().steal_since(before)}
        if (used := line_use(found, self._speeds)) is not None:
            readings["tx_line_use"] = used
        return replace(found, readings=readings)

    def reach(self, rates: Sequence[float], duration: float) -> Outcome:
        """One trial of *duration* s with a rate of its own in each way. Raises TestbedError where there is no outcome.

        Streams that come by turns are all sent at once by it.
        """
        told = self._trial(Load(max(rates)), duration)
        told["rates"] = {str(direction.tx_port): pps for direction, pps in zip(self._directions, rates, strict=True)}
        intended = {
            str(direction.tx_port): round(pps * duration)
            for direction, pps in zip(self._directions, rates, strict=True)
        }
        told["intended"] = intended
        profile = None if is_steady(self._profile) else self._profile
        if profile is not None:
            rows = {
                str(direction.tx_port): [item.to_json() for item in side_by_side(profile, direction)]
                for direction in self._directions
            }
            self._ask("prepare", streams=rows)
        directions, self._directions = self._directions, ()  # until the streams are the profile's again
        answer = self._ask("trial", self._trial_limit(duration), **told)
        if profile is not None:
            self._ask("prepare", streams=self._streams)
        self._directions = directions
        return outcome(answer, Load(max(rates)), duration, self._directions, self.settings.clock_speed, intended)

    def burst(self, frames: int, pps: float) -> Outcome:
        """*frames* frames from each sending port at *pps*, by TRex's single bursts. Raises TestbedError."""
        if frames < 1 or self._profile is None or not self._directions:
            raise TestbedError(f"a burst needs a prepared profile and at least 1 frame, not {frames}")
        load, seconds = Load(pps), frames / pps
        told = self._trial(load, seconds)
        for name in ("duration", "groups", "intended"):
            del told[name]
        check_steady(self._profile)
        data = {
            str(direction.tx_port): [item.to_json() for item in bursts(self._profile, direction, frames)]
            for direction in self._directions
        }
        answer = self._ask("burst", self._trial_limit(seconds), streams=data, frames=frames, **told)
        return outcome(answer, load, seconds, self._directions, self.settings.clock_speed)

    def step_down(self, first: Load, seconds: float, second: Load, after: float, every: float) -> StepDown:
        """See :meth:`..base.Generator.step_down`. Raises TestbedError."""
        self._check_fixed(first, second)
        check_steady(self._profile)
        told = self._trial(first, seconds + after)
        limit = self._trial_limit(seconds + after)
        return step_down(partial(self._ask, limit=limit), told, self._directions, first, seconds, second, every)

    def live(self) -> TrexLive:
        """See :meth:`..base.Generator.live`."""
        check_steady(self._profile)
        return TrexLive(self._ask, self._trial(Load(1.0), 1.0), self._directions)

    def capture(self, load: Load, duration: float, limit: int) -> Mapping[int, tuple[bytes, ...]]:
        """Send, and return up to *limit* frames (without FCS) that each receiving port saw. Raises TestbedError.

        TRex captures in its service mode, in software: at a low load only.
        """
        self._check_fixed(load)
        answer = self._ask("capture", self._trial_limit(duration), keep=limit, **self._trial(load, duration))
        return {int(port): tuple(bytes.fromhex(item) for item in items) for port, items in answer["frames"].items()}

    def stop(self) -> None:
        """Stop all traffic now. Raises TestbedError."""
        self._ask("stop")

    def reconnect(self) -> None:
        """Begin anew: end the client's process and let another one connect and take the ports. Raises TestbedError.

        Ports that are still held by this generator are taken over; from anybody else only as the settings' ``force``
        says. There are no streams afterwards. Where it fails, it may be tried again.
        """
        self.close()
        self._directions, self._profile = (), None
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop traffic, release the ports, end the client's process. Harmless when repeated."""
        process, self._process = self._process, None
        if process is None or process.close():
            self._forget()  # else a later run finds what this one could not give back

    def __enter__(self) -> TrexGenerator:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    # -- the process ---------------------------------------------------------------------------------------------------

    def _trial(self, load: Load, duration: float) -> dict[str, Any]:
        if not self._directions:
            raise TestbedError("the generator has no streams yet: prepare a profile before measuring")
        return {
            "intended": {
                str(direction.tx_port): due(self._profile, direction, load.pps, duration)
                for direction in self._directions
            },
            "rates": {str(direction.tx_port): load.pps for direction in self._directions},
            "directions": [(direction.tx_port, direction.rx_port) for direction in self._directions],
            "duration": duration,
            "clock_speed": self.settings.clock_speed,
            "drain": self.settings.drain,
            "groups": self._groups,
        }

    def _check_fixed(self, *loads: Load) -> None:
        """Latency streams of a user's own profile have a rate that TRex takes off the load before it multiplies."""
        program, least = self._profile.program if self._profile else None, min(load.pps for load in loads)
        if program is not None and least <= program.fixed_pps:
            raise TestbedError(
                f"latency streams of the profile send {program.fixed_pps:g} frames/s whatever the load is, and"
                f" {least:g} were asked for; expected more"
            )

    def _trial_limit(self, duration: float) -> float:
        # the client ends a trial after 1.5 x its duration + 5 s; this is for a client that does not
        return (1.5 * duration + self.settings.drain) / self.settings.clock_speed + CALL_LIMIT + IMPORT_LIMIT / 2

    def _call(self, command: str, limit: float = CALL_LIMIT, **arguments: Any) -> Any:
        if self._process is None:
            raise TestbedError("the generator is closed")
        return self._process.call(command, limit, arguments)

    def _ask(self, command: str, limit: float = CALL_LIMIT, **arguments: Any) -> Any:
        where = self.settings.address
        try:
            return self._call(command, limit, **arguments)
        except ClientError as error:
            if error.kind == "lost":
                raise TestbedError(f"the TRex server at {where} no longer answers: {error}") from error
            if error.kind == "taken":
                raise TestbedError(f"the ports of the TRex server at {where} are no longer ours: {error}") from error
            if "API handler" in str(error):
                # each server draws its own; the client's requests carry that of the server it met
                raise TestbedError(f"the TRex server at {where} was started again meanwhile: {error}") from error
            raise TestbedError(f"the TRex server at {where}, asked to {command}: {error}") from error


def _probe_bytes(profile: Profile) -> int:
    return probe_size(profile, commonest(profile))


def _named(owners: Mapping[int, str]) -> str:
    return ", ".join(f"{port} by '{owner}'" for port, owner in owners.items())
