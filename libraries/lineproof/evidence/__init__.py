"""What a run leaves behind: records, tables, plots, and Allure results (``docs/evidence.md``)."""
