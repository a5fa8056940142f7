"""Studies of the rule, of the model and of speed: run by hand from a clone, and not shipped."""

import sys
from pathlib import Path

# what tests need as well is in utest/support
sys.path.append(str(Path(__file__).resolve().parents[1] / "utest"))
