"""A forwarding model of a router: physical parameters, pure functions from offered to forwarded rates, exact counts."""
