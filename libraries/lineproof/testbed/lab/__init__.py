"""Testbeds that labgrid lends: a place is acquired before a run uses it, watched meanwhile, and given back."""
