"""``python -m lineproof.testbed.trex``: holds a TRex server as long as its standard input lasts."""

import sys

from .server import main

if __name__ == "__main__":
    sys.exit(main())
