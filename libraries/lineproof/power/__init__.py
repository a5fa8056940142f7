"""Power meters: how many watts a router draws, and how surely the meter knows it."""
