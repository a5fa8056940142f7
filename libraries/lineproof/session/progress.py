"""Progress while a sentence is judged: one changing line on a terminal, else a plain line every 30 s."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import TextIO

from ..core.step_down import StepDown
from ..methods.budget import duration_text
from ..units import si
from .bench import EndedTrial, Reading

PLAIN_LINE_INTERVAL = 30.0
"""Seconds of real time between plain lines, so that a log shows that the run goes on."""

_TO_NEXT_LINE, _RETURN, _WIPE_NEXT_LINE = "\x1bD\x1b[1A\x1b7\x1b[1B\r\x1b[K", "\x1b8", "\x1b7\x1b[1B\r\x1b[K\x1b8"
"""Terminal codes: scroll if necessary, save the place, wipe the next line; back to the place; both at once."""


class Progress:
    """Shows the progress of one sentence on *stream* (None: nowhere). *clock_speed*: the testbed's, per real second."""

    def __init__(
        self, stream: TextIO | None, clock_speed: float = 1.0, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream, self._speed, self._now = stream, clock_speed, now
        self._terminal = stream is not None and stream.isatty()
        self._sentence, self._load = "", ""
        self._said = now()
        self._shown = False

    def begin(self, sentence: str, pps: float) -> None:
        """*sentence* is judged from now on, at *pps* frames/s into each port."""
        self._sentence, self._load = sentence, si(pps, "pps")
        self._said = self._now()
        if self._terminal:
            self._show("warming up")

    def work(self, what: str) -> None:
        """*what* runs from now on, at loads that it chooses."""
        self._sentence, self._load = what, ""
        self._said = self._now()

    def step(self, words: str) -> None:
        """A trial is over; *words* say how far the work is."""
        if self._terminal or self._now() - self._said >= PLAIN_LINE_INTERVAL:
            self._show(words)

    def hear(self, event: EndedTrial | Reading | StepDown) -> None:
        """Show that a trial is over, and how long it takes if all further ones are good."""
        if not isinstance(event, EndedTrial) or event.standing is None:
            return
        trial, standing = event.trial, event.standing
        left = standing.rule.trials_left
        seconds = left * trial.outcome.duration / self._speed
        words = f"{duration_text(seconds)} left, {standing.keeps} of {standing.keeps + left} trials good"
        words += f", {standing.misses} bad" if standing.misses else ""
        words += f", {standing.unknown} open" if standing.unknown else ""
        self.step(f"{words}, lost {trial.lost} of {trial.offered}")

    def end(self) -> None:
        """The sentence is over: the line goes."""
        if self._shown and self._terminal and self._stream is not None:
            self._write(_WIPE_NEXT_LINE)
        self._shown = False

    def _show(self, words: str) -> None:
        self._said, self._shown = self._now(), True
        text = f"{words}: {self._sentence}{f' at {self._load}' if self._load else ''}"
        if self._terminal:
            room = shutil.get_terminal_size().columns - 1
            self._write(_TO_NEXT_LINE + text[:room] + _RETURN)
        else:
            self._write(text + "\n")

    def _write(self, text: str) -> None:
        if self._stream is not None:
            try:
                self._stream.write(text)
                self._stream.flush()
            except (OSError, ValueError):  # the stream was closed
                self._stream = None
