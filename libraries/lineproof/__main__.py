"""``python -m lineproof COMMAND``."""

import os
import sys


def _forget_current_folder() -> None:
    """Stop Python's -m from importing modules of the current folder, unless this package is there."""
    # os alone (so PTH): whatever else is imported may come from there
    try:
        here = os.getcwd()  # noqa: PTH109
    except OSError:
        return
    if not sys.flags.safe_path and sys.path[:1] == [here] and not os.path.isdir("lineproof"):  # noqa: PTH112
        del sys.path[0]


if __name__ == "__main__":
    _forget_current_folder()

    from .commands.main import command_line

    command_line()
