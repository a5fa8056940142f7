"""How a labgrid coordinator fails."""


class CoordinatorLost(Exception):
    """The coordinator does not answer, or no longer."""


class Refused(Exception):
    """The coordinator answers no; its words."""
