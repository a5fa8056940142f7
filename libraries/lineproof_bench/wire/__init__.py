"""Real frames on real Linux interfaces: the backend of the ``netns`` testbed."""
