"""The simulated routers' SSH shells (``python -m lineproof_bench.shells``), in front of the forwarding model."""
