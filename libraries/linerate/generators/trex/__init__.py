"""Cisco TRex as a generator: :mod:`.driver`; :mod:`.client` is the process that holds TRex's own client."""
