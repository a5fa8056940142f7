"""Lineproof: acceptance tests for router performance SLAs. The core, which knows nothing of Robot Framework."""

__version__ = "0.2.0"
