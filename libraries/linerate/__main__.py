"""``python -m linerate COMMAND``."""

from .commands.main import command_line

if __name__ == "__main__":
    command_line()
