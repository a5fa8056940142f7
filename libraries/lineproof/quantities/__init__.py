"""Quantities that a sentence may promise: one folder a quantity."""
