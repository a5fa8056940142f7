"""A calibration that was changed or damaged is read, or refused with its file in one sentence."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lineproof.ceilings.calibration import calibration_path, read_calibration
from lineproof.errors import LineproofError
from support import hostile
from support.fuzz import TIMES

RAW = re.compile(r"Traceback|\[Errno|\b[A-Z][a-z]\w*Error\b")
ODD: tuple[bytes, ...] = (
    *(b"\xff", b"9" * 5000, b".nan", b"1e999", b"&a *a", b"!!python/object:os.system", b"\n", b"", b"'", b": ", b"\t"),
    *(b"0000-99-99", b"\xed\xa0\x80", b"-", b"[]", b"{}", b"null", b"true", b"-1", b".inf", b'"\\uD800"'),
)
CALIBRATION = """\
testbed: simulated
platform: netgate6100
kind: simulated
link_bps: 10000000000.0
lineproof: 0.2.0
simulated: true
versions: {server: v3.08, mode: STL}
ceilings:
- traffic: 64b
  mean_size: 64.0
  bidirectional: false
  measured: '2026-11-22T12:00:00+00:00'
  line_pps: 14880952.381
  offered_pps: 14880952.381
  lossless_pps: 14434523.81
  received_pps: 14434523.81
  trials: 21
  trial_duration: 1.0
  steal_percent: 0.0
  latency: {load_pps: 7217261.905, frames: 1000, mean_us: 3.0, p99_low_us: 0.0, p99_high_us: 10.0}
  pairs: 1
  watched: {goal: standard, load_pps: 14145833.333, trials: 14, lossy: 0, trial_duration: 5.0}
"""


def test_a_damaged_calibration_is_read_or_one_sentence(tmp_path: Path) -> None:
    path = calibration_path(tmp_path, "simulated", "netgate6100")
    for seed in range(100 * TIMES):
        chance, text = random.Random(seed), CALIBRATION.encode()
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice(ODD) + text[at + chance.randrange(30) :]
        path.write_bytes(text)
        try:
            found = read_calibration(tmp_path, "simulated", "netgate6100")
            assert found is not None
            found.why_stale("v3.08", datetime.now(UTC))
        except LineproofError as error:
            assert str(path) in str(error), (seed, error)
            assert not RAW.search(str(error)), (seed, error)


@hostile.of(40)
@given(data=st.data())
def test_a_mutated_calibration_is_right_or_one_paragraph(tmp_path: Path, data: st.DataObject):
    path = calibration_path(tmp_path, "simulated", "netgate6100")
    path.write_bytes(data.draw(hostile.mutated(CALIBRATION)))
    with hostile.bounded():
        try:
            assert read_calibration(tmp_path, "simulated", "netgate6100") is not None
        except LineproofError as error:
            assert str(error).startswith(str(path)) and str(error).isprintable()


def test_the_calibration_is_right_before_it_is_mutated(tmp_path: Path):
    calibration_path(tmp_path, "simulated", "netgate6100").write_text(CALIBRATION)
    assert read_calibration(tmp_path, "simulated", "netgate6100") is not None
