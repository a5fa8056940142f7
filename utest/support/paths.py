"""Where things stand in the repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = ROOT / "libraries"
VARIABLES = ROOT / "variables"
SUPPORT = Path(__file__).resolve().parent
DATA = SUPPORT.parent / "data"
