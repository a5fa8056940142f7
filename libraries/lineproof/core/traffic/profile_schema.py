"""The schema of ``variables/profiles/*.yaml``: the traffic words of sentences and their meaning."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from ...config import Config, Ipv4Address, readable
from .profiles import AddressRange

Word = Annotated[str, Field(pattern=r"^[^\s:]+$")]
Size = Annotated[int, Field(ge=64, le=9216)]
Label = Annotated[int, Field(ge=16, lt=1 << 20)]
"""An MPLS label; those below 16 are reserved (RFC 3032 2.1)."""


class SizesFile(Config):
    """``kind: sizes``: the range of ``Nb``, and the sizes that are named without FCS."""

    kind: Literal["sizes"]
    smallest: Annotated[int, Field(ge=64)]
    largest: Annotated[int, Field(le=9216)]
    named_without_fcs: tuple[int, ...] = ()
    about: str


class _Frame(Config):
    size: Size
    weight: Annotated[int, Field(ge=1)]


class MixFile(Config):
    """``kind: mix``: frame sizes (with FCS) in a ratio, or a genome of RFC 6985 with sizes for its capital letters."""

    kind: Literal["mix"]
    name: Word
    frames: tuple[_Frame, ...] = ()
    genome: str = ""
    custom: dict[Annotated[str, Field(pattern="^[A-Z]$")], Size] = Field(default_factory=dict)
    about: str

    @model_validator(mode="after")
    def _check_frames_or_genome(self) -> MixFile:
        if bool(self.frames) is bool(self.genome):
            raise ValueError("expected either 'frames' or 'genome'")
        return self


class GenomeFile(Config):
    """``kind: genome``: the sizes (with FCS) of the letters in ``genome:<letters>``."""

    kind: Literal["genome"]
    letters: dict[Annotated[str, Field(pattern="^[a-z]$")], Annotated[int, Field(ge=64)]]
    longest: Annotated[int, Field(ge=1)]
    about: str


class FlowsFile(Config):
    """``kind: flows``: the addresses of one word (``1-flow``, ``var1``)."""

    kind: Literal["flows"]
    name: Word
    source: AddressRange
    destination: AddressRange
    default: bool = False
    about: str


class FlowCountFile(Config):
    """``kind: flow-count``: the addresses of ``<N>-flows``: N sources, beginning with ``source``, one destination."""

    kind: Literal["flow-count"]
    source: Ipv4Address
    destination: Ipv4Address
    most: Annotated[int, Field(ge=2, le=1 << 24)]
    about: str


class _Tag(Config):
    protocol: Literal["802.1Q", "802.1ad"]
    vlan: Annotated[int, Field(ge=1, le=4094)]

    @property
    def data(self) -> tuple[int, int]:
        """EtherType and VLAN."""
        return 0x8100 if self.protocol == "802.1Q" else 0x88A8, self.vlan


class HeadersFile(Config):
    """``kind: headers``: what one word (``vlan``, ``ipv6``) changes in the headers.

    ``tags``, ``labels``: outermost first; ``labels_back``: of the second direction. ``prefix``: the 96 bits before the
    IPv4 address in IPv6 addresses.
    """

    kind: Literal["headers"]
    name: Word
    tags: tuple[_Tag, ...] = ()
    labels: tuple[Label, ...] = ()
    labels_back: tuple[Label, ...] = ()
    prefix: Annotated[
        str,
        readable(
            lambda text: ipaddress.IPv6Address(text or "::"), "is not an IPv6 address; expected for example 2001:2::"
        ),
    ] = ""
    transport: Literal["tcp", ""] = ""
    about: str

    @property
    def changes(self) -> dict[str, Any]:
        """The changes, as arguments of :class:`.profiles.Headers`."""
        plain = self.model_dump(include={"labels", "labels_back", "prefix", "transport"}, exclude_defaults=True)
        return plain | ({"tags": tuple(tag.data for tag in self.tags)} if self.tags else {})

    @field_validator("prefix")
    @classmethod
    def _check_prefix(cls, value: str) -> str:
        if value and int(ipaddress.IPv6Address(value)) & 0xFFFFFFFF:
            raise ValueError("the last 32 bits of the prefix are for the IPv4 address; expected zeros there")
        return value

    @model_validator(mode="after")
    def _check_changes(self) -> HeadersFile:
        if len(self.labels) != len(self.labels_back):
            raise ValueError("expected as many 'labels_back' as 'labels'")
        if not (self.tags or self.labels or self.prefix or self.transport):
            raise ValueError("changes nothing; expected 'tags', 'labels', 'prefix' or 'transport'")
        return self


class WordOfFile(Config):
    """A word that names the frames of ``file``, a path from the YAML file's folder."""

    name: Word
    file: str
    about: str


class PcapFile(WordOfFile):
    """``kind: pcap``: the frames of a capture (pcap or pcapng)."""

    kind: Literal["pcap"]


Tunable = str | int | float | bool | tuple[str | int | float, ...]


class TrexFile(WordOfFile):
    """``kind: trex``: the streams of ``file``, a profile in TRex's format (.py, .yaml or .json).

    ``tunables``: by name, or as command-line words (``[--size, 64]``). ``mac_dst``: a stream's own destination MAC
    address is kept (``packet``), or replaced by the ``port``'s, which is the router's.
    """

    kind: Literal["trex"]
    file: Annotated[str, Field(pattern=r"\.(py|yaml|yml|json)$")]
    tunables: dict[str, Tunable] | tuple[str | int | float, ...] = ()
    mac_dst: Literal["packet", "port"] = "packet"

    @field_validator("tunables")
    @classmethod
    def _check_names(cls, value: object) -> object:
        if isinstance(value, dict) and (reserved := {"direction", "port_id", "tunables", "self"} & value.keys()):
            raise ValueError(f"'{min(reserved)}' is set by TRex itself; expected one of the profile's own tunables")
        return value

    @property
    def words(self) -> tuple[str, ...]:
        """The tunables as command-line words: true gives only the name, false nothing."""
        if not isinstance(self.tunables, dict):
            return tuple(str(item) for item in self.tunables)
        problems: list[str] = []
        for name, value in self.tunables.items():
            values = value if isinstance(value, tuple) else () if value is True else (value,)
            if value is not False:
                problems += [f"--{name}", *(str(item) for item in values)]
        return tuple(problems)

    @property
    def named(self) -> dict[str, Tunable]:
        """The tunables by name; empty where they are words."""
        return self.tunables if isinstance(self.tunables, dict) else {}


Entry = Annotated[
    SizesFile | MixFile | GenomeFile | FlowsFile | FlowCountFile | HeadersFile | PcapFile | TrexFile,
    Field(discriminator="kind"),
]


class ProfileFile(Config):
    """One file of ``variables/profiles``."""

    entries: tuple[Entry, ...]
