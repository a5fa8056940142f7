"""Races between programs, run by hand. Each prints ratios of one run."""
