"""A calibration that was changed or damaged is read, or refused with its file in one sentence."""

from __future__ import annotations

import os
import random
import re
from datetime import UTC, datetime
from pathlib import Path

from linerate.ceilings.calibration import read_calibration
from linerate.errors import LinerateError

RAW = re.compile(r"Traceback|\[Errno|\b[A-Z][a-z]\w*Error\b")
MANY = int(os.environ.get("LINERATE_FUZZ", "1"))
ODD: tuple[bytes, ...] = (
    *(b"\xff", b"9" * 5000, b".nan", b"1e999", b"&a *a", b"!!python/object:os.system", b"\n", b"", b"'", b": ", b"\t"),
    *(b"0000-99-99", b"\xed\xa0\x80", b"-", b"[]", b"{}", b"null", b"true", b"-1", b".inf", b'"\\uD800"'),
)
FILE = b"""\
testbed: a
platform: b
kind: simulated
link_bps: 1.0e+10
linerate: 0.2
simulated: true
versions:
  server: v3.08
ceilings:
- traffic: 64b
  mean_size: 64.0
  bidirectional: false
  measured: '2026-11-22T12:00:00+00:00'
  line_pps: 14880952.381
  offered_pps: 14880952.0
  lossless_pps: 14000000.0
  received_pps: 14000000.0
  trials: 3
  trial_duration: 1.0
  latency: {load_pps: 1000.0, frames: 100, mean_us: 5.0, p99_low_us: 4.0, p99_high_us: 9.0}
  watched: {goal: standard, load_pps: 13000000.0, trials: 20, lossy: 0, trial_duration: 1.0}
"""


def test_a_damaged_calibration_is_read_or_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a-b.yaml"
    for seed in range(100 * MANY):
        chance, text = random.Random(seed), FILE
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice(ODD) + text[at + chance.randrange(30) :]
        path.write_bytes(text)
        try:
            found = read_calibration(tmp_path, "a", "b")
            assert found is not None
            found.why_stale("v3.08", datetime.now(UTC))
        except LinerateError as error:
            assert str(path) in str(error), (seed, error)
            assert not RAW.search(str(error)), (seed, error)
