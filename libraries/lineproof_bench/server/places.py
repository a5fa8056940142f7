"""Which processors send for a port, and where its card is, as ``get_system_info`` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .params import refused

ALL_CORES = (1 << 64) - 1
"""TRex's mask where a client gives none."""


@dataclass(frozen=True, slots=True)
class Places:
    """``cores`` that send, for each pair of ports. ``numa``, ``pci``: each port's node, and its own address."""

    cores: int = 1
    numa: Sequence[int] = ()
    pci: Sequence[str] = ()

    def check_mask(self, mask: int) -> None:
        """Raise RpcError for a mask of ``start_traffic`` that leaves none of a pair's cores."""
        if not mask & (1 << self.cores) - 1:
            raise refused(f"core_mask: '0x{mask:x}' for {self.cores} cores generates an empty set")

    def of_port(self, index: int) -> dict[str, Any]:
        """Return its part of the port's entry. The ports of a pair share their cores."""
        first = index // 2 * self.cores
        return {
            "cores": list(range(first, first + self.cores)),
            "numa": self.numa[index] if index < len(self.numa) else -1,
            **({"pci_addr": self.pci[index]} if index < len(self.pci) else {}),
        }
