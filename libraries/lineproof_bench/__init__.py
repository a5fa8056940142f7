"""Bench without hardware: a TRex-compatible server (two backends) and router shells. The product starts them."""
