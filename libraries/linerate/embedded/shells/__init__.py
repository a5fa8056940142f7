"""The simulated routers' SSH shells (``python -m linerate.embedded.shells``), in front of the forwarding model."""
