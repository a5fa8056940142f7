"""The command line: ``python -m linerate …``."""
