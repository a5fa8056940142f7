"""RFC 2544 26.4 to 26.6, which need more than trials: bursts, a load that changes, a router that restarts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from ..core.trial import Load
from ..errors import SentenceError, TestbedError
from ..generators.abilities import Method
from ..methods.deviations import Deviation
from ..methods.rfc2544.back_to_back import BackToBackResult, back_to_back
from ..methods.rfc2544.recovery import RecoveryResult, recovery
from ..methods.rfc2544.reset import ResetResult, reset
from ..methods.rfc2544.throughput import ThroughputResult
from .characterising import Characteriser
from .router_watch import RouterRestarted

RESTART_POLL = 0.5
"""Seconds of the testbed's clock between two readings of a router that restarts."""

RECONFIGURED = Deviation(
    "RFC 2544 26.6",
    "a router that comes back with its configuration",
    "the testbed configured it anew as soon as it could log in, and the time that took is in the figure",
)


@dataclass(frozen=True)
class LiveCharacteriser(Characteriser):
    """RFC 2544 26.4 to 26.6, each at the throughputs *found* with the same words; a size without one is left out."""

    def back_to_back(
        self,
        words: str,
        found: Sequence[ThroughputResult],
        repeats: int = 50,
        longest: int | None = None,
        resolution: int = 1,
    ) -> tuple[BackToBackResult, ...]:
        """RFC 2544 26.4, RFC 9004: the longest burst that passes, at the testbed's maximum load."""
        self.session.plan.check_method(Method.BACK_TO_BACK)
        results = []
        for item, pps in _with_throughput(found):
            (traffic,) = self._of_sizes(words, [item.size])
            rate = self._put(traffic, warm_up=False).pps

            send, terms = partial(self.session.traffic.burst, pps=rate), self._terms(traffic)
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
        """RFC 2544 26.5 from 110 % of each throughput, or from the testbed's maximum load if that is less."""
        self.session.plan.check_method(Method.RECOVERY)
        results = []
        for item, pps in _with_throughput(found):
            (traffic,) = self._of_sizes(words, [item.size])
            most, terms = self._put(traffic).pps, self._terms(traffic)
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
        """RFC 2544 26.6 at the throughput of the smallest frames: *cause* starts a reset of the router.

        If the testbed's ``prepare`` configures the router, that is repeated after the restart, and declared. Raises
        TestbedError if the router cannot be reset, SentenceError if no throughput was found.
        """
        self.session.plan.check_method(Method.RESET)
        rows = sorted(_with_throughput(found), key=lambda row: row[0].size)
        if not rows:
            raise SentenceError("a reset is measured at a throughput, and none was found")
        self.session.router.check_resettable()
        item, pps = rows[0]
        (traffic,) = self._of_sizes(words, [item.size])
        if traffic.pairs > 1:
            raise SentenceError(
                f"'{words}': the frames of all ports together show when a router is back, and one pair's frames may"
                " hide that another's are missing; expected without 'on N pairs'"
            )
        self._put(traffic)
        with self._reconfiguring_after_restart():
            live = self.session.traffic.live()
            result = reset(live, cause, kind, item.size, Load(pps), interval, quiet=quiet, limit=limit)
        if self.session.plan.testbed.prepare == "configure":
            result = replace(result, deviations=(*result.deviations, RECONFIGURED))
        return (result,)

    @contextmanager
    def _reconfiguring_after_restart(self) -> Iterator[None]:
        """Meanwhile wait for a restart of the router, and configure it again."""
        session, over, back = self.session, threading.Event(), threading.Event()
        configure = session.router.prepare_configuration()

        def attend() -> None:
            while not over.wait(RESTART_POLL / session.testbed.facts.clock_speed):
                try:
                    session.router.watch.read()
                except RouterRestarted:
                    if not back.is_set():
                        session.router.driver.forget_changes()
                        back.set()
                    if _succeeds(configure):
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


def _succeeds(action: Callable[[], None]) -> bool:
    try:
        action()
    except TestbedError:
        return False
    return True


def _with_throughput(found: Sequence[ThroughputResult]) -> list[tuple[ThroughputResult, float]]:
    return [(item, item.throughput.pps) for item in found if item.throughput is not None]
