"""The simulated routers' SSH shells, in front of the forwarding model."""
