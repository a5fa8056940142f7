"""A router's entry of one neighbour: whether frames to the generator can be addressed, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

from .json_types import NotKept


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
    others: NotKept[str | None] = None
    """Other MAC addresses in entries of ``address``, as ``02:00:00:00:00:99 on eth2``."""

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
    def warning(self) -> str:
        """Return why an entry that is right may not stay in use, and what to do; "" where nothing shows that."""
        entry = f"the router's neighbour entry for {self.address} on {self.found_at or self.interface}"
        if self.problem:
            return ""
        if self.others:
            return f"{entry} has {self.mac}, and another one has {self.others}; remove the wrong one"
        if self.permanent is not False:
            return ""
        return (
            f"{entry} was learned, not set: it goes when it ages, because TRex answers ARP in service mode only, and"
            f" frames are lost from then on; {self.remedy} for good"
        )
