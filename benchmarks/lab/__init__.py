"""How long suites take on benches that labgrid lends, and whether each has one of its own."""
