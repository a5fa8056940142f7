"""A switch between generator and router, which counts the same frames."""
