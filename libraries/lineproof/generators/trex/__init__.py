"""Cisco TRex as a generator: :mod:`.driver`; :mod:`.client` is the process with TRex's own client."""
