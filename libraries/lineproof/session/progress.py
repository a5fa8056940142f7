"""Progress of a run: one changing line on a terminal, else a plain line every 30 s."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import TextIO

from ..core.step_down import StepDown
from ..units import duration_text, si
from .judging import EndedTrial, Reading

PLAIN_LINE_INTERVAL = 30.0
"""Seconds of real time between plain lines, so that a log shows that the run goes on."""

_TO_NEXT_LINE, _RETURN, _WIPE_NEXT_LINE = "\x1bD\x1b[1A\x1b7\x1b[1B\r\x1b[K", "\x1b8", "\x1b7\x1b[1B\r\x1b[K\x1b8"
"""Terminal codes: scroll if necessary, save the place, wipe the next line; back to the place; both at once."""


class Progress:
    """Shows on *stream* (None: nowhere) how far a testbed's opening, each of *sentences*, or other work is.

    *clock_speed*: the testbed's, per real second.
    """

    def __init__(
        self,
        stream: TextIO | None,
        clock_speed: float = 1.0,
        sentences: int = 0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream, self._speed, self._sentences, self._now = stream, clock_speed, sentences, now
        self._terminal = stream is not None and stream.isatty()
        self._judged, self._work, self._about = 0, "", ""
        self._said = now()
        self._shown = False

    def begin(self, sentence: str, pps: float) -> None:
        """Show that the next *sentence* is judged from now on, at *pps* frames/s into each port."""
        self._judged += 1
        of = f" of {self._sentences}" if self._judged <= self._sentences else ""
        self._start(f"sentence {self._judged}{of}", f": {sentence} at {si(pps, 'pps')}", "warming up")

    def work(self, what: str, is_part: bool = False) -> None:
        """Show that *what* runs from now on, no sentence. *is_part*: of much work: a log has its beginning, too."""
        self._start(what, "", "", is_part)

    def step(self, text: str) -> None:
        """Show *text*, how far the work is, because a part of it is over."""
        if self._terminal or self._now() - self._said >= PLAIN_LINE_INTERVAL:
            self._show(text)

    def hear(self, event: EndedTrial | Reading | StepDown) -> None:
        """Show that a trial is over, and how long it takes if all further ones are good."""
        if not isinstance(event, EndedTrial) or event.standing is None:
            return
        trial, standing = event.trial, event.standing
        left = standing.rule.trials_left
        text = f"trial {trial.number}, {duration_text(left * trial.outcome.duration / self._speed)} left"
        text += f", {standing.misses} bad" if standing.misses else ""
        text += f", {standing.unknown} open" if standing.unknown else ""
        self.step(f"{text}, lost {trial.lost} of {trial.offered}")

    def end(self) -> None:
        """Remove the line, because the work is over."""
        if self._shown and self._terminal:
            self._write(_WIPE_NEXT_LINE)
        self._shown = False

    def _start(self, work: str, about: str, text: str, is_part: bool = False) -> None:
        self._work, self._about, self._said = work, about, self._now()
        if self._terminal or is_part:
            self._show(text)

    def _show(self, text: str) -> None:
        self._said, self._shown = self._now(), True
        line = ", ".join(filter(None, [self._work, text])) + self._about
        if self._terminal:
            room = shutil.get_terminal_size().columns - 1
            self._write(_TO_NEXT_LINE + line[:room] + _RETURN)
        else:
            self._write(line + "\n")

    def _write(self, text: str) -> None:
        if self._stream is not None:
            try:
                self._stream.write(text)
                self._stream.flush()
            except (OSError, ValueError):  # the stream was closed
                self._stream = None
