"""Procedures: how much a router carries, without a threshold. One folder each, made of what ``procedure.py`` says."""
