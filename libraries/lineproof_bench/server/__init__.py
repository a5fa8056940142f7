"""The TRex-compatible server: JSON-RPC, port owners, streams, events. ``python -m lineproof_bench.server``."""
