"""Routers under test: telemetry, configure, restore. A router knows nothing of generators."""
