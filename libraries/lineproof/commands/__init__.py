"""The command line: ``lineproof …``."""
