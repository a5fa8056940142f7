"""Signals that end a program in order: Ctrl-C, SIGTERM, a hang-up, SIGQUIT. One rule, so that none leaves a testbed."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

Handler = Callable[[int, FrameType | None], object]


class Interrupted(KeyboardInterrupt):
    """A signal ends the program; its text is :func:`interrupt_words`."""


def interrupt_words(number: int) -> str:
    """Return what ended the work, for messages: ``interrupted by Ctrl-C``."""
    names = {signal.SIGINT: "Ctrl-C", signal.SIGHUP: "a hang-up (SIGHUP)"}
    named = signal.Signals(number)
    return f"interrupted by {names.get(named, named.name)}"


def handle_ending(handler: Handler | int) -> dict[int, Any]:
    """Handle the signals of ENDING, but no ignored hang-up (``nohup``); return the former handlers."""
    before: dict[int, Any] = {number: signal.getsignal(number) for number in ENDING}
    if before[signal.SIGHUP] is signal.SIG_IGN:
        del before[signal.SIGHUP]
    for number in before:
        signal.signal(number, handler)
    return before


@contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """Raise Interrupted at the first signal of ENDING, so that traffic stops and the router is restored.

    Further ones are ignored, because all that follows has a limit.
    """
    before = handle_ending(_raise_interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise_interrupt(number: int, frame: FrameType | None) -> None:
    handle_ending(signal.SIG_IGN)
    let_go_of_terminal()
    raise Interrupted(interrupt_words(number))


def let_go_of_terminal() -> None:
    """Write nowhere if nobody reads any more: a write to a closed terminal is an error."""
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            descriptor = -1 if stream is None else stream.fileno()
        except (OSError, ValueError):
            continue
        poller = select.poll()
        if descriptor >= 0:
            poller.register(descriptor, 0)
        if any(event & (select.POLLHUP | select.POLLERR) for _, event in poller.poll(0)):
            empty = os.open(os.devnull, os.O_WRONLY)
            os.dup2(empty, descriptor)
            os.close(empty)


_SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)


def end_with_parent() -> None:
    """Ask for SIGTERM when the thread ends that started this process: so when its process is killed.

    To be called once SIGTERM is handled. The end of standard input says the same, unless another process keeps it open.
    """
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
