"""Student's t is SciPy's, though SciPy is not imported."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from lineproof.stats.intervals import t_value

# as the logarithm: small ones matter, and there are large ones
freedoms = st.floats(0, 9).map(lambda power: 10**power)
confidences = st.one_of(st.floats(0.01, 0.999), st.floats(3, 10).map(lambda digits: 1 - 10**-digits))


@settings(max_examples=300, deadline=None)
@given(confidences, freedoms)
def test_it_is_scipys(confidence: float, freedom: float) -> None:
    # what lies outside has few digits where the confidence is near 1: SciPy takes the half of it from 1 again
    digits = 1e-9 + 1e-15 / (1 - confidence)
    assert t_value(confidence, freedom) == pytest.approx(special.stdtrit(freedom, (1 + confidence) / 2), rel=digits)


@pytest.mark.slow
def test_a_comparison_imports_neither_scipy_nor_numpy() -> None:
    code = "import sys; from lineproof.stats import compare; compare([1, 2, 3], [2, 3, 5]); print({*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "'lineproof.stats'" in done.stdout and not {"'scipy'", "'numpy'"} & {*done.stdout.split(", ")}
