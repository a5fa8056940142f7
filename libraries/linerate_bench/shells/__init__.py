"""The simulated routers' SSH shells (``python -m linerate_bench.shells``), in front of the forwarding model."""
