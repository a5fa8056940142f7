"""RFC 2544 26.4 to 26.6, which ask more than trials: bursts, a load that changes, a router that restarts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from ..counts.trial import Load
from ..errors import SentenceError, TestbedError
from ..methods.deviations import Deviation
from ..methods.rfc2544.back_to_back import BackToBackResult, back_to_back
from ..methods.rfc2544.recovery import RecoveryResult, recovery
from ..methods.rfc2544.reset import ResetResult, reset
from ..methods.rfc2544.throughput import ThroughputResult
from .characterising import Characteriser
from .router_watch import RouterRestarted

ASK = 0.5
"""Seconds of the wall between two questions to a router that restarts whether it is there again."""

CONFIGURED_ANEW = Deviation(
    "RFC 2544 26.6",
    "a router that comes back with its configuration",
    "the testbed configured it anew as soon as it could log in, and the time that took is in the figure",
)


@dataclass(frozen=True)
class LiveCharacteriser(Characteriser):
    """A :class:`~linerate.session.characterising.Characteriser` for RFC 2544 26.4 to 26.6.

    Each takes the throughputs *found* with the same words; a size without one is left out.
    """

    def back_to_back(
        self,
        words: str,
        found: Sequence[ThroughputResult],
        repeats: int = 50,
        longest: int | None = None,
        resolution: int = 1,
    ) -> tuple[BackToBackResult, ...]:
        """RFC 2544 26.4, RFC 9004: the longest burst that passes, at the most that the generator is asked for."""
        results = []
        for item, pps in _with_throughput(found):
            (traffic,) = self._of_sizes(words, [item.size])
            rate = self._put(traffic, warm_up=False).pps

            send, terms = partial(self.session.traffic.burst, pps=rate), self._terms(self._telling(traffic))
            result = back_to_back(send, item.size, rate, min(pps, rate), terms, longest, resolution, repeats)
            if rate < item.line_pps * (1 - 1e-9):
                done = f"bursts at {100 * rate / item.line_pps:.4g} % of it, the most that the generator is asked for"
                short = Deviation("RFC 2544 26.4", "frames with the minimum gap of the medium", done)
                result = replace(result, deviations=(*result.deviations, short))
            results.append(result)
        return tuple(results)

    def recovery(
        self,
        words: str,
        found: Sequence[ThroughputResult],
        repeats: int = 3,
        overload_for: float = 60.0,
        after: float = 20.0,
        interval: float = 0.1,
    ) -> tuple[RecoveryResult, ...]:
        """RFC 2544 26.5 from 110 % of each throughput, or the most that the generator is asked for where less."""
        results = []
        for item, pps in _with_throughput(found):
            (traffic,) = self._of_sizes(words, [item.size])
            most, terms = self._put(traffic).pps, self._terms(self._telling(traffic))
            times = (repeats, overload_for, after, interval)
            results.append(recovery(self.session.traffic.step_down, item.size, Load(pps), most, terms, *times))
        return tuple(results)

    def reset(
        self,
        words: str,
        found: Sequence[ThroughputResult],
        cause: Callable[[], None],
        kind: str = "software",
        interval: float = 0.1,
        quiet: float = 5.0,
        limit: float = 600.0,
    ) -> tuple[ResetResult, ...]:
        """RFC 2544 26.6 at the throughput of the smallest frames: *cause* resets the router (returns once under way).

        Where the testbed's ``prepare`` configures the router, that is done anew once it has restarted, and declared.
        Raises TestbedError on a testbed whose router nobody can reset, and where nothing was found.
        """
        rows = sorted(_with_throughput(found), key=lambda row: row[0].size)
        if not rows:
            raise SentenceError("a reset is measured at a throughput, and none was found")
        self.session.router.check_resettable()
        item, pps = rows[0]
        (traffic,) = self._of_sizes(words, [item.size])
        if traffic.pairs > 1:
            raise SentenceError(
                f"'{words}': when a router is back is told by the frames of all ports together, of which those of one"
                " pair may hide another's; expected without 'on N pairs'"
            )
        self._put(traffic)
        with self._coming_back():
            live = self.session.traffic.live()
            result = reset(live, cause, kind, item.size, Load(pps), interval, quiet=quiet, limit=limit)
        if self.session.plan.testbed.prepare == "configure":
            result = replace(result, deviations=(*result.deviations, CONFIGURED_ANEW))
        return (result,)

    @contextmanager
    def _coming_back(self) -> Iterator[None]:
        """Meanwhile a restart of the router is waited for, and it is configured as it was."""
        session, over, back = self.session, threading.Event(), threading.Event()
        configure = session.router.configuring()

        def attend() -> None:
            while not over.wait(ASK / session.testbed.facts.clock_speed):
                try:
                    session.router.watch.read()
                except RouterRestarted:
                    if not back.is_set():
                        session.router.driver.forget()
                        back.set()
                    if _tried(configure):
                        session.router.watch.configured()
                        return
                except TestbedError:
                    continue  # not there yet

        thread = threading.Thread(target=attend, name="reset", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(60.0)


def _tried(action: Callable[[], None]) -> bool:
    try:
        action()
    except TestbedError:
        return False
    return True


def _with_throughput(found: Sequence[ThroughputResult]) -> list[tuple[ThroughputResult, float]]:
    return [(item, item.throughput.pps) for item in found if item.throughput is not None]
