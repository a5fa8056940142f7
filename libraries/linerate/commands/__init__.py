"""The command line: ``linerate …``."""
