"""The process that runs TRex's own client library: ``python -m linerate.generators.trex.client``."""
