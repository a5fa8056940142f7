"""Bytes that a typing error, a broken disk or an attacker puts in place of what a file should hold."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from support.fuzz import TIMES

SECONDS, MEGABYTES = 5.0, 500
"""The most that reading one input may take."""

VALUES = (
    *("", "~", "x", "-1", "0", "1", "1e999", "-1e-300", "0.0", ".inf", "nan", "inf", "'inf'", "true", "yes", "[]"),
    *("{}", "0x10", "010", "12:30:45", "1_000", "٣", "٣b", "９", "1,5", "[1, 2]", "{a: 1}", "[[[[]]]]", "2026-02-30"),
    *("=", "<<", "9" * 20, "9" * 400, "9" * 5000, f"'{'9' * 400}'", "'1e308'", "1e17", "1e-17", "x" * 20000),
    *("!!python/object:os.system x", "!!binary aGk=", "!!timestamp 2026-01-01", "!!set {a}", "!!int x", "!!float x"),
    *("!!str 5", "!foo", "&a [*a]", "*nothing", "&b x", "'", '"', '"\\0"', '"\\ud800"', '"\\e[31m"', '"a\\nb"', "|"),
    *(">", "@", "../../etc/passwd", "/dev/zero", "a/b", "..", "\x00", "\x07", "\ufeff", "\u2028", "${HOME}", "%n"),
    *("# x", ": :", "- -", "[" * 200, "{a: " * 200, "? " * 200, "- " * 200, "\t", "---", "...", "%YAML 9.9"),
    *("10 Gbps", "٣ Gbps", "9" * 400 + " Gbps", "1000000000000000000"),
)
"""In place of a value of a YAML file."""

NESTED = "\n".join(
    f"x{depth}: &x{depth} [{', '.join(['x' if not depth else f'*x{depth - 1}'] * 9)}]" for depth in range(9)
)
"""Aliases of aliases: 500 bytes that stand for 9⁹ values."""


def of(few: int) -> settings:
    """Hypothesis' settings: *few* examples, times what the environment asks for."""
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=few * TIMES, deadline=None, suppress_health_check=checks, database=None)


@contextmanager
def bounded() -> Iterator[None]:
    """Yield what is done inside takes no more than SECONDS of CPU and MEGABYTES of memory."""
    began, before = time.process_time(), _peak()
    yield
    assert time.process_time() - began < SECONDS
    assert _peak() - before < MEGABYTES


def _peak() -> float:
    """The most MB of memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@st.composite
def mutated(draw: st.DrawFn, text: str) -> bytes:
    """The YAML file *text* with one or two lines wrong, and maybe some of its bytes."""
    lines = text.splitlines()
    for _ in range(draw(st.integers(1, 2))):
        at, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        key, between, value = lines[at].partition(": ")
        wrong = draw(st.sampled_from(VALUES))
        # one of several values in a line
        within = value.replace(draw(st.sampled_from(value.split() or [""])), wrong, 1)
        lines[at] = draw(
            st.sampled_from(
                (
                    f"{key}{between}{wrong}",
                    f"{key}{between}{within}",
                    f"{wrong}: {value}",
                    f"  {lines[at]}",
                    lines[other],
                    "",
                )
            )
        )
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    at = draw(st.integers(0, len(data)))
    change = draw(st.sampled_from(("", "", "", "bytes", "cut", "nested", "anchors", "utf-16", "latin-1", "utf-8-sig")))
    match change:
        case "":
            return data
        case "bytes":
            return data[:at] + draw(st.binary(max_size=8)) + data[at + draw(st.integers(0, 8)) :]
        case "cut":
            return data[:at]
        case "nested":
            return NESTED.encode() + b"\n" + data
        case "anchors":
            return data.replace(b": ", b": &a ", 1)
    return data.decode("utf-8", "replace").encode(change, "replace")
