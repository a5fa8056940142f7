"""Faults of the modelled bench on request: the wrapped model, the schedule, the counters."""
