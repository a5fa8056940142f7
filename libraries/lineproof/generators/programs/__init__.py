"""Generators that are programs of a host: trafgen, iperf3, pkt-gen. Their frames leave a host's own interfaces."""
