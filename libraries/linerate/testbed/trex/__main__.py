"""``python -m linerate.testbed.trex``: told by standard input, holds a TRex server until that ends."""

import sys

from .server import main

if __name__ == "__main__":
    sys.exit(main())
