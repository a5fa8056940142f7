"""A bench without hardware: a TRex-compatible server (two backends) and router shells. Only ``testbed`` starts it."""
