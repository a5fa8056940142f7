"""The evidence that a run leaves: records, tables, plots, and Allure results (``docs/evidence.md``)."""
