"""A router that is judged from outside: nobody logs in to it, and a plan that configures one is refused."""

from __future__ import annotations

from ...errors import TestbedError
from ...system.ssh_shell import Result

WHY_UNREAD = "the router is a black box (shell: none), whose own counts are not read"


def no_shell(command: str, limit: float) -> Result:
    """Refuse *command*: it stands in place of the shell of a black box. Raises TestbedError."""
    raise TestbedError(
        f"'{command[:80]}' cannot be run: {WHY_UNREAD}; expected a platform whose software has a 'shell'"
    )
