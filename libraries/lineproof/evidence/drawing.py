"""Colours of pictures, and the unit of their rates."""

DIRECTION_COLOURS = ("#2c6fa6", "#59a3c9", "#7a68a6", "#a996c9")
LOST_COLOUR = "#d1382c"
TEXT_COLOUR = "#2b3540"
FAINT_COLOUR = "#8a95a0"
THRESHOLD_COLOUR = "#0d7a4f"
GRID_COLOUR = "#dde3e8"
SIMULATED_COLOUR = "#9a3a06"


def rate_unit(pps: float) -> tuple[str, float]:
    """The unit for rates up to *pps*, and its size in frames/s."""
    return ("Mpps", 1e6) if pps >= 1e6 else ("kpps", 1e3) if pps >= 1e3 else ("pps", 1.0)
