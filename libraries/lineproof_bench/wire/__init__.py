"""Real frames on real Linux interfaces: the backend of the ``netns`` testbed."""

from .backend import WireBackend, WirePort

__all__ = ["WireBackend", "WirePort"]
