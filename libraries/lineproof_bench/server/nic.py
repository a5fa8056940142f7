"""Answers and counts of a card under TRex: the facts of one file of ``nics/``, each with its source.

Without a file the server answers as TRex does in software mode, and its counters leave nothing out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from lineproof.config import Config, load_config, validate_config

FOLDER = Path(__file__).parent / "nics"

UNKNOWN_SPEED_BPS = 200e9
"""The speed that TRex v3.08 reports for one that the driver does not know: DPDK's 4294967295 Mbit/s, cut to the highest
speed that TRex has (src/trex_port_attr.h:50)."""

FrameLayer = Literal["ipv6", "vlan", "qinq", "mpls"]
"""Headers that a frame may have beside plain IPv4 over Ethernet."""

Counted = Literal[
    "received",
    "sent",
    "received_bytes",
    "sent_bytes",
    "missed",
    "unsent",
    "multicasts",
    "pauses_received",
    "pauses_sent",
]
"""The kinds of extended counters: frames; bytes without FCS; frames that the card missed, or did not send; frames
to a group of receivers; pause frames. All others stay 0."""


class Fact(Config):
    """A value of :class:`ServerCard` and its ``source``: files and lines of TRex's sources, DPDK's among them.

    ``note``: what to know about it.
    """

    value: Any
    source: str
    note: str = ""


class XstatsNames(Config):
    """Names of extended counters in the driver's order, and which of them count anything here (``counted``).

    Those of single priorities are left out: none counts here.
    """

    source: str
    names: tuple[str, ...]
    counted: Mapping[str, Counted] = {}


class TrexSources(Config):
    """The version of TRex whose sources the facts are from, and its commit."""

    version: Annotated[str, Field(pattern=r"v\d+\.\d+")]
    commit: Annotated[str, Field(pattern=r"[0-9a-f]{40}")]


class ServerCardFile(Config):
    """A file of ``nics/``: ``facts`` are fields of :class:`ServerCard`."""

    nic: str
    name: str
    trex: TrexSources
    facts: Mapping[str, Fact]
    xstats: tuple[XstatsNames, ...]


class ServerCard(Config):
    """The answers of a server about its ports, and how it counts.

    ``driver``, ``trex``: "" for the backend's driver and the server's own version. ``pci``: ``{port}`` is the port's
    number. ``knows_speed``: False for a driver that does not know its link's speed; ``speed_while_down`` in Mbit/s;
    None: as while it is up. ``flow_control``: RTE_ETH_FC_* of the port, -1: the driver cannot say.
    ``refused_groups``: the server's words for streams of a packet group whose frames have such a layer;
    ``unseen_groups``: layers whose frames the card does not lead to the core that counts groups.

    ``missed_errors``: how many ``ierrors`` a frame makes that the card missed; ``missed_received``: whether it is in
    ``ipackets`` all the same. ``received_fcs``: whether ``ibytes`` has the FCS. ``xstats_take``: reading the extended
    counters clears registers that TRex has not read yet, so that its own counters miss these frames.
    """

    driver: str = ""
    trex: str = ""
    description: str = ""
    pci: str = "N/A"
    knows_speed: bool = True
    speed_while_down: int | None = None
    supported_speeds: tuple[int, ...] = ()
    flow_control: Annotated[int, Field(ge=-1, le=3)] = -1
    is_virtual: bool = True
    rx_caps: tuple[str, ...] = ("flow_stats", "latency", "rx_bytes")
    refused_groups: Mapping[FrameLayer, str] = {}
    unseen_groups: tuple[FrameLayer, ...] = ()
    missed_errors: Annotated[int, Field(ge=0)] = 1
    missed_received: bool = False
    received_fcs: bool = True
    xstats_take: bool = False
    xstats: tuple[tuple[str, Counted | None], ...] = (
        ("rx_good_packets", "received"),
        ("tx_good_packets", "sent"),
        ("rx_good_bytes", "received_bytes"),
        ("tx_good_bytes", "sent_bytes"),
        ("rx_multicast_packets", "multicasts"),
        ("rx_missed_errors", None),
        ("rx_errors", "missed"),
        ("tx_errors", "unsent"),
        ("rx_xoff_packets", "pauses_received"),
        ("tx_xoff_packets", "pauses_sent"),
    )

    @property
    def xstats_names(self) -> list[str]:
        """The names of the extended counters."""
        return [name for name, _ in self.xstats]

    def refusal_of(self, frame: bytes) -> str | None:
        """The words for a stream with this *frame* that shall be counted; None: it may be."""
        return next((self.refused_groups[layer] for layer in layers_of(frame) if layer in self.refused_groups), None)

    def sees(self, frame: bytes) -> bool:
        """Return whether received frames like this one reach the core that counts groups."""
        return not set(layers_of(frame)) & set(self.unseen_groups)


TAGS = (0x8100, 0x88A8, 0x9100)
TYPES = {"arp": 0x0806, "ip": 0x0800, "ip6": 0x86DD}


class HeaderOffsets(NamedTuple):
    """Where a frame's headers are. ``l3``: offset behind the Ethernet header and its tags, whose type is ``kind``.

    ``tags``: the EtherTypes of the tags.
    """

    tags: tuple[int, ...]
    kind: int
    l3: int


def headers_of(frame: bytes) -> HeaderOffsets:
    """Return the headers of an Ethernet frame."""
    at, tags = 12, list[int]()
    kind = int.from_bytes(frame[at : at + 2], "big")
    while kind in TAGS and len(frame) >= at + 6:
        at += 4
        tags.append(kind)
        kind = int.from_bytes(frame[at : at + 2], "big")
    return HeaderOffsets(tuple(tags), kind, at + 2)


def layers_of(frame: bytes) -> list[FrameLayer]:
    """Return what *frame*, an Ethernet frame, has beside plain IPv4."""
    headers = headers_of(frame)
    layers: list[FrameLayer] = ["qinq" if at or tag == 0x88A8 else "vlan" for at, tag in enumerate(headers.tags)]
    kinds: dict[int, FrameLayer] = {0x86DD: "ipv6", 0x8847: "mpls"}
    return layers + [layer for kind, layer in kinds.items() if kind == headers.kind]


def read_nic_file(name: str, folder: Path = FOLDER) -> tuple[ServerCardFile, ServerCard]:
    """The file *name* of ``nics/``, and what its facts say. Raises ConfigError with file, line and key."""
    path = folder / f"{name}.yaml"
    file = load_config(path, ServerCardFile)
    given = {key: fact.value for key, fact in file.facts.items()} | {"trex": file.trex.version}
    counters = [(each, group.counted.get(each)) for group in file.xstats for each in group.names]
    return file, validate_config(given | {"xstats": counters}, ServerCard, path, {})
