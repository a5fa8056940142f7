"""What a run leaves behind: records, tables, plots, and the way to Allure (``docs/evidence.md``)."""
