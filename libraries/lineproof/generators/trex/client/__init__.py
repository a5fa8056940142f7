"""The process that runs TRex's own client library: ``python -m lineproof.generators.trex.client``."""
