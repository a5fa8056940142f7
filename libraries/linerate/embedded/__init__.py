"""A bench without hardware: a TRex-compatible server with two backends, and router shells. Only ``testbed`` starts it."""
