"""A kernel router that handles fewer packets than it gets, however fast this machine is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from lineproof.core.rule import Ruling
from lineproof.core.verdict import Verdict
from lineproof.session.session import Session
from support.kernel_router import run_in_router

FEWEST, MOST = 600, 12_000
"""Rules of a table that no packet of the tests is in; the router compares each packet with one after the other."""
FIRST = 1000
"""The priority of the first: before those of the main table, of which the last is 32766."""


@contextlib.contextmanager
def rules(session: Session, count: int, first: int = FIRST) -> Iterator[None]:
    """The router with *count* rules more that no packet matches."""
    batch = f"for i in $(seq {first} {first + count - 1}); do echo rule {{}} pref $i from 192.0.2.1 table 77; done"
    run_in_router(session, "sh", "-c", f"{batch.format('add')} | ip -batch -")
    try:
        yield
    finally:
        run_in_router(session, "sh", "-c", f"{batch.format('del')} | ip -batch -")


def _no_pass(verdict: Verdict) -> bool:
    return verdict.ruling is not Ruling.PASS


def overloaded(
    session: Session, attempt: Callable[[], Verdict], enough: Callable[[Verdict], bool] = _no_pass, growth: float = 2.0
) -> Verdict:
    """The verdict of *attempt* with as many rules as the router needs until it is *enough*: until frames are lost.

    Each time *growth* as many: with much more than it needs the router holds up its sender, too, and the two share
    what is seen.
    """
    with contextlib.ExitStack() as stack:
        present, wanted = 0, float(FEWEST)
        while True:
            stack.enter_context(rules(session, round(wanted) - present, FIRST + present))
            present, wanted = round(wanted), growth * wanted
            if enough(verdict := attempt()) or wanted > MOST:
                return verdict
