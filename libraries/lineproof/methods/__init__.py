"""Methods: how trials are chosen. Each knows one thing of the world, ``measure(load, duration) -> Outcome``."""
