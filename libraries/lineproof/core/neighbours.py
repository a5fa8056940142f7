"""A router's entry of one neighbour: whether frames to the generator can be addressed, and for how long."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NeighbourEntry:
    """The router's entry of ``address``, a port of the generator behind ``interface``.

    ``expected``: its MAC address, "" if it is not known here; ``mac``: the one of the router's entry, "" if it has none
    that it can use. ``permanent``: it was set, not learned; None: not known. ``found_at``: the interface of the entry.
    ``fix``: the command on the router that sets it for good; "" if that is not known.
    """

    interface: str
    address: str
    expected: str
    mac: str = ""
    permanent: bool | None = None
    found_at: str = ""
    fix: str = ""

    @property
    def problem(self) -> str:
        """Why frames to it do not arrive, in words; "" if they do, as far as this shows."""
        if not self.mac:
            return f"the router has no neighbour entry for {self.address} on {self.interface}"
        if self.expected and self.mac != self.expected:
            return (
                f"the router's neighbour entry for {self.address} on {self.found_at or self.interface} has {self.mac},"
                f" and the generator's port has {self.expected}"
            )
        return ""

    @property
    def remedy(self) -> str:
        """Return what to do about it, "" if the command is not known."""
        return f"'{self.fix}' on the router sets it" if self.fix else ""

    @property
    def ages(self) -> str:
        """Why the entry will not last, in words; "" if it does, or is not there."""
        if self.problem or self.permanent is not False:
            return ""
        return (
            f"the router's neighbour entry for {self.address} on {self.found_at or self.interface} was learned, not"
            " set: it goes when it ages, because TRex answers ARP in service mode only, and frames are lost from then"
            " on"
        )
