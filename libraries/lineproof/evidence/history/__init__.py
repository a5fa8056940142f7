"""The history: all runs in one store, SQLite or PostgreSQL, and what became better or worse over time."""
