"""How fast runs go into the history, and how fast a trend over them answers."""
