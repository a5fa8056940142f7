"""Documents of tables, notes and pictures, in every form that people and programs read."""
