"""Suites of version 0.1 import this file. Its keywords are in ``lineproof.robot.Lineproof`` now, like all others."""


class ForwardedFrames:
    """No keywords."""
