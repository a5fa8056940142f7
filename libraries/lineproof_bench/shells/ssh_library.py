"""asyncssh, imported without its search for libraries of ciphers that the simulated router can do without.

It looks for ``liboqs`` and ``libnettle`` with :func:`ctypes.util.find_library`, which runs ``ldconfig``, ``gcc`` and
``ld`` up to six times: longer than all else that this process needs to begin.
"""

from __future__ import annotations

import ctypes.util


def _none(name: str) -> None:
    """No library is found, and none is looked for."""


_search = ctypes.util.find_library
ctypes.util.find_library = _none
try:
    import asyncssh
finally:
    ctypes.util.find_library = _search

__all__ = ["asyncssh"]
