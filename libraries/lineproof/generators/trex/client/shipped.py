# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The only file that imports ``trex``, the client that TRex v3 ships. For the client's process only.

Its ``trex/__init__.py`` puts its folder ``external_libs`` first on the path: Scapy, PyYAML and a ZeroMQ binding that
current Pythons cannot use. Here the package is found without running that file, so that those of PyPI are used, which
trex-stl-lib 0.3 requires too.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from ....errors import TestbedError
from ....system.identity import cache_folder
from ..client_folders import client_folder
from .answers import use_steady_clock
from .service import Refusal


def load_library(folder: Path) -> SimpleNamespace:
    """Import the parts of the client in *folder* that are used here. Raises Refusal."""
    home = client_folder(folder)
    if home is None:
        raise Refusal("install", f"there is no TRex client in '{folder}'")
    # never write into a TRex installation or a checked copy
    try:
        sys.pycache_prefix = str(cache_folder() / "bytecode")
    except TestbedError:
        sys.dont_write_bytecode = True
    package = ModuleType("trex", "TRex's client, without its own search for libraries.")
    package.__path__ = [str(home / "trex")]
    sys.modules["trex"] = package
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 warns of its old strings
            import scapy
            import zmq
            from trex.common.trex_types import RC_OK, RpcCmdData
            from trex.stl import trex_stl_packet_builder_scapy as builder
            from trex.stl import trex_stl_streams as streams
            from trex.stl.trex_stl_client import STLClient
    except Exception as error:
        raise Refusal(
            "install", f"the TRex client in '{folder}' cannot be imported ({type(error).__name__}: {error})"
        ) from error
    use_steady_clock("trex")
    return SimpleNamespace(
        scapy=scapy, zmq=zmq, builder=builder, streams=streams, STLClient=STLClient, RC_OK=RC_OK, RpcCmdData=RpcCmdData
    )


class IdleSubscriber:
    """Replaces the library's subscriber: it does nothing, always with success."""

    last_data_recv_ts = None

    def __init__(self, library: SimpleNamespace) -> None:
        self._library = library

    def connect(self) -> Any:
        """There is nothing to connect."""
        return self._library.RC_OK()

    def barrier(self, *_: Any, **__: Any) -> Any:
        """There is nothing to wait for."""
        return self._library.RC_OK()

    def disconnect(self) -> None:
        """There is nothing to close."""

    def set_as_zombie(self) -> None:
        """There is no thread."""
