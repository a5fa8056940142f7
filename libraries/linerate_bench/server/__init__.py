"""The TRex-compatible server: JSON-RPC, port owners, streams, events. ``python -m linerate_bench.server``."""
