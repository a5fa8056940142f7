"""What was counted: trials, directions, latency, telemetry, the ledger of lost frames, reachability, duplicates."""
