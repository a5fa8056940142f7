"""Counts and the rule: trials, directions, latency, telemetry, the ledger of lost frames, reachability, duplicates."""
