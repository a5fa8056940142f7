"""The process that holds TRex's own client library: ``python -m linerate.generators.trex.client``."""
