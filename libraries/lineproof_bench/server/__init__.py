"""The TRex-compatible server: JSON-RPC, port owners, streams, events."""
