"""The traffic words of a project: ``variables/profiles/*.yaml``, and the profile that words of a sentence name.

Formats of captures: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import ipaddress
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ...config import load_config
from ...errors import ConfigError, SentenceError
from ...files import read_file
from ...project import Folder, Layers, listed
from ...units import FCS
from ...visible import shortened
from .ip_header import ip_header, why_not_routed
from .profile_schema import (
    FlowCountFile,
    FlowsFile,
    GenomeFile,
    HeadersFile,
    MixFile,
    ProfileFile,
    SizesFile,
    TrexFile,
    WordOfFile,
)
from .profiles import OWN_ADDRESSES, AddressRange, Flows, FrameClass, Headers, Profile
from .trex_profile import TrexProfile

T = TypeVar("T")

ProgramLoader = Callable[[Path, TrexFile], TrexProfile]
"""Loads a profile in TRex's format from a file. Raises ConfigError, TestbedError."""

_SIZE = re.compile(r"([0-9]{1,300})b")
_FLOWS = re.compile(r"([0-9]{1,300})([kmM]?)-flows")
_FACTOR = {"": 1, "k": 10**3, "m": 10**6, "M": 10**6}
_GENOME = "genome:"
_SAID_BY_HEADERS = {
    "tags": "which VLAN tags",
    "labels": "which MPLS labels",
    "prefix": "which IPv6 addresses",
    "transport": "which transport",
}
"""The meaning of each key of a word for headers."""


@dataclass(frozen=True)
class Catalogue:
    """All traffic words of sentences. ``files``: words that name a capture or a profile in TRex's format."""

    flows: Mapping[str, FlowsFile]
    mixes: Mapping[str, MixFile]
    sizes: SizesFile
    headers: Mapping[str, HeadersFile]
    files: Mapping[str, tuple[WordOfFile, Path]]
    genome: GenomeFile | None
    counts: FlowCountFile | None
    load_program: ProgramLoader | None = None

    @classmethod
    def read(cls, folder: Folder, load_program: ProgramLoader | None = None) -> Catalogue:
        """Read every ``*.yaml`` of *folder*; *load_program* loads profiles in TRex's format. Raises ConfigError.

        What the project itself defines takes the place of what is packaged, whatever the files are called.
        """
        paths: dict[str, Path] = {}
        entries: dict[str, Any] = {}
        for path, entry in _entries(folder):
            if (name := _name(entry)) in entries:
                raise ConfigError(f"'{name}' is defined twice", path)
            paths[name], entries[name] = path, entry

        def of_kind(kind: type[T]) -> dict[str, T]:
            return {name: entry for name, entry in entries.items() if isinstance(entry, kind)}

        sizes, flows, mixes = of_kind(SizesFile), of_kind(FlowsFile), of_kind(MixFile)
        if not sizes or sum(item.default for item in flows.values()) != 1:
            raise ConfigError("needs one 'kind: sizes' and exactly one 'kind: flows' with 'default: true'", str(folder))
        catalogue = cls(
            flows,
            mixes,
            sizes["sizes"],
            of_kind(HeadersFile),
            {name: (entry, paths[name].parent / entry.file) for name, entry in of_kind(WordOfFile).items()},
            of_kind(GenomeFile).get("genome"),
            of_kind(FlowCountFile).get("flow-count"),
            load_program,
        )
        for name in mixes:
            try:
                catalogue.frames(name)
            except SentenceError as error:
                raise ConfigError(f"the mix '{name}': {error}", paths[name]) from None
        return catalogue

    def words(self) -> list[str]:
        """Return all traffic words, for messages."""
        return [
            *("64b", "1514b", "<bytes>b", *self.mixes, *self.files),
            *([_GENOME + "<letters>"] if self.genome else []),
            *self.flows,
            *(["<N>-flows"] if self.counts else []),
            *self.headers,
        ]

    def is_word(self, word: str) -> bool:
        """Return whether *word* is a traffic word."""
        return self._names_frames(word) or self._names_flows(word) or word in self.headers

    def spelled(self, word: str) -> str | None:
        """Return the traffic word that *word* means, whatever its case; None: none. The letters of a genome keep it."""
        lower = word.lower()
        if lower.startswith(_GENOME):
            lower = _GENOME + word[len(_GENOME) :]
        known = (item for item in self.words() if item.lower() == lower)
        return next((item for item in (word, lower, *known) if self.is_word(item)), None)

    def _names_frames(self, word: str) -> bool:
        genome = self.genome is not None and word.startswith(_GENOME)
        return bool(_SIZE.fullmatch(word)) or word in self.mixes or word in self.files or genome

    def _names_flows(self, word: str) -> bool:
        return word in self.flows or (self.counts is not None and bool(_FLOWS.fullmatch(word)))

    def profile(self, words: list[str]) -> Profile:
        """Return the profile that *words* name, in any order.

        Raises SentenceError, and for a file ConfigError or TestbedError.
        """
        for word in words:
            if not self.is_word(word):
                raise SentenceError(f"'{shortened(word)}' is not a traffic word; known: {', '.join(self.words())}")
        frame_word = _at_most_one("which frames", [word for word in words if self._names_frames(word)])
        flow_word = _at_most_one("which flows", [word for word in words if self._names_flows(word)])
        header_words = [word for word in words if word in self.headers]
        if not frame_word:
            known = ["64b", "1514b", *self.mixes, *self.files]
            raise SentenceError(f"no frame size; expected one of {', '.join(known)}")
        name = " ".join((frame_word, *(word for word in words if word != frame_word)))
        if frame_word in self.files:
            if flow_word or header_words:
                extra = " ".join([*header_words, flow_word]).strip()
                raise SentenceError(f"'{frame_word}' brings its own headers and addresses; expected without '{extra}'")
            entry, path = self.files[frame_word]
            if isinstance(entry, TrexFile):
                return self._program_profile(name, entry, path)
            captured = read_capture(path).items()
            return Profile(
                name, tuple(FrameClass(len(data) + FCS, often, data) for data, often in captured), OWN_ADDRESSES
            )
        frames, headers = self.frames(frame_word), self._headers(header_words)
        least, smallest = headers.size + FCS, min(frame.size for frame in frames)
        if smallest < least:
            one = len(frames) == 1
            which = f"a frame of {smallest} bytes" if one else f"the {smallest}-byte frames of '{frame_word}'"
            expected = f"'{least}b {' '.join(header_words)}' or more" if one else f"frames of {least} bytes or more"
            needed = f"the headers of {headers} and the FCS, {least} bytes"
            raise SentenceError(f"'{name}': {which} cannot hold {needed}; expected {expected}")
        return Profile(name, frames, self._flows(flow_word), headers)

    def _program_profile(self, name: str, entry: TrexFile, path: Path) -> Profile:
        if self.load_program is None:
            raise SentenceError(f"'{name}' is a profile in TRex's format, which is not loaded here")
        program = self.load_program(path, entry)
        frames = tuple(FrameClass(size, part) for size, part in program.sizes())
        return Profile(name, frames, OWN_ADDRESSES, program=program)

    def frames(self, word: str) -> tuple[FrameClass, ...]:
        """Return the frames of a size, a mix or a genome. Raises SentenceError."""
        if word in self.mixes:
            mix = self.mixes[word]
            if mix.genome:
                return self._genome(mix.genome, mix.custom)
            return tuple(FrameClass(frame.size, frame.weight) for frame in mix.frames)
        if word.startswith(_GENOME):
            return self._genome(word.removeprefix(_GENOME), {})
        return (FrameClass(self._size(word)),)

    def _size(self, word: str) -> int:
        match = _SIZE.fullmatch(word)
        if not match:
            raise SentenceError(f"'{word}' is not a frame size; expected for example '64b'")
        named = int(match[1])
        size = named + FCS if named in self.sizes.named_without_fcs else named
        if not self.sizes.smallest <= size <= self.sizes.largest:
            raise SentenceError(
                f"'{shortened(word)}': frames are {self.sizes.smallest} to {self.sizes.largest} bytes with FCS"
            )
        return size

    def _genome(self, letters: str, custom: Mapping[str, int]) -> tuple[FrameClass, ...]:
        """Return each size as often as its letter occurs, in the order of their first letters (RFC 6985 4)."""
        if self.genome is None:
            raise SentenceError("a genome needs a 'kind: genome' among the profiles, which defines its letters")
        known = {**self.genome.letters, **custom}
        allowed = {letter: size for letter, size in known.items() if size <= self.sizes.largest}
        expected = ", ".join(f"{letter}={size}" for letter, size in allowed.items())
        if not 0 < len(letters) <= self.genome.longest:
            raise SentenceError(f"a genome has 1 to {self.genome.longest} letters; expected of {expected}")
        for letter in letters:
            if letter not in known:
                note = "; capital letters are custom sizes of a 'kind: mix'" if letter.isupper() else ""
                raise SentenceError(f"'{letter}' is no letter of the genome{note}; expected {expected}")
            if letter not in allowed:
                limit = f"more than the {self.sizes.largest} that frames have at most here"
                raise SentenceError(f"'{letter}' means {known[letter]} bytes, {limit}; expected {expected}")
        counted = Counter(known[letter] for letter in letters)
        return tuple(FrameClass(size, weight) for size, weight in counted.items())

    def _flows(self, word: str) -> Flows:
        match = _FLOWS.fullmatch(word)
        if word not in self.flows and match and self.counts:
            number = int(match[1]) * _FACTOR[match[2]]
            if not 2 <= number <= self.counts.most:
                raise SentenceError(f"'{shortened(word)}': expected '1-flow', or 2 to {self.counts.most} flows")
            first, to = ipaddress.IPv4Address(self.counts.source), self.counts.destination
            return Flows(AddressRange(str(first), str(first + number - 1)), AddressRange(to, to))
        chosen = self.flows[word] if word else next(item for item in self.flows.values() if item.default)
        return Flows(chosen.source, chosen.destination)

    def _headers(self, words: list[str]) -> Headers:
        changes: dict[str, Any] = {}
        for key, what in _SAID_BY_HEADERS.items():
            _at_most_one(what, [word for word in words if key in self.headers[word].changes])
        for word in words:
            changes |= self.headers[word].changes
        return Headers(**changes)


def _at_most_one(what: str, words: list[str]) -> str:
    """Return the only one of *words*, or "". Raises SentenceError where there are two."""
    if len(words) > 1:
        raise SentenceError(f"'{words[0]}' and '{words[1]}' both say {what}; keep one")
    return words[0] if words else ""


def _entries(folder: Folder) -> Iterator[tuple[Path, Any]]:
    """Return what the files define, each with its file; the packaged ones where the project has none of that name."""
    own = folder.own if isinstance(folder, Layers) else folder
    read = [(path, entry) for path in listed(folder, "*.yaml") for entry in load_config(path, ProfileFile).entries]
    mine = [entry for path, entry in read if path.parent == own]
    taken = {_name(entry) for entry in mine}
    has_default = any(isinstance(entry, FlowsFile) and entry.default for entry in mine)
    for path, entry in read:
        if path.parent == own:
            yield path, entry
        elif _name(entry) not in taken:
            other = has_default and isinstance(entry, FlowsFile) and entry.default
            yield path, entry.model_copy(update={"default": False}) if other else entry


def replaced_entries(folder: Layers) -> list[str]:
    """Return a sentence for each word that means something else in the packaged files. Raises ConfigError."""
    if not listed(folder.own, "*.yaml") or folder.own == folder.packaged:
        return []
    packaged = {_name(entry): entry for _, entry in _entries(folder.packaged)}
    return [
        f"{path}: '{_name(entry)}' takes the place of the one that comes with Lineproof"
        for path, entry in _entries(folder)
        if path.parent == folder.own and packaged.get(_name(entry), entry) != entry
    ]


def _name(entry: Any) -> str:
    """Return the traffic word that *entry* defines, else its kind, of which there is one."""
    return str(getattr(entry, "name", entry.kind))


MIN_BYTES, MAX_BYTES = 60, 9212
"""Bytes without FCS: shorter frames are padded to the minimum on the wire."""

MAX_FRAMES = 256
"""Different frames of a profile: each is a stream of the generator."""

MAX_FILE_BYTES = 8 << 20
"""Bytes of a capture file."""

_ETHERNET = 1


def read_capture(path: Path) -> Mapping[bytes, int]:
    """Return the different frames of the capture file *path*, without FCS and MAC addresses, and how often each occurs.

    Raises ConfigError for frames that a router cannot forward.
    """
    counts: Counter[bytes] = Counter()
    for number, data in enumerate(_frames(path), 1):
        counts[_check_frame(data, number, path)] += 1
        if len(counts) > MAX_FRAMES:
            raise ConfigError(f"has more than {MAX_FRAMES} different frames; expected a shorter one", path)
    if not counts:
        raise ConfigError("has no frames", path)
    return counts


def _frames(path: Path) -> Iterator[bytes]:
    """Yield each frame of the capture file *path*. Raises ConfigError."""
    content = read_file(path, MAX_FILE_BYTES)
    order, is_pcapng = _PCAP_BYTE_ORDERS.get(content[:4]), content[:4] == _SECTION.to_bytes(4, "big")
    if order is None and not is_pcapng:
        raise ConfigError("is not a pcap or pcapng file", path)
    try:
        for link_type, data in _pcap_frames(content, order) if order else _pcapng_frames(content):
            if link_type != _ETHERNET:
                raise ConfigError(f"was captured on link type {link_type}; expected Ethernet (1)", path)
            yield data
    except (struct.error, LookupError):
        raise ConfigError("is a damaged capture; capture it again", path) from None


def _check_frame(data: bytes, number: int, path: Path) -> bytes:
    frame = (bytes(12) + data[12:]).ljust(MIN_BYTES, b"\0")
    why_not, header = why_not_routed(frame), ip_header(frame)
    if header is not None and (whole := header.packet_end(frame)) > len(data):
        why_not = f"was cut: {len(data)} of {whole} bytes; expected a capture of whole frames ('tcpdump -s 0')"
    if why_not:
        raise ConfigError(f"frame {number} {why_not}", path)
    if len(frame) > MAX_BYTES:
        raise ConfigError(f"frame {number} has {len(frame)} bytes; expected at most {MAX_BYTES} without FCS", path)
    return frame


_PCAP_BYTE_ORDERS = {
    bytes.fromhex(magic): order
    for magic, order in (("d4c3b2a1", "<"), ("4d3cb2a1", "<"), ("a1b2c3d4", ">"), ("a1b23c4d", ">"))
}
"""Byte orders by the first four bytes; the second of each pair has times in ns."""

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_PCAPNG_BYTE_ORDERS = {bytes.fromhex("4d3c2b1a"): "<", bytes.fromhex("1a2b3c4d"): ">"}


def _pcap_frames(content: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield each frame and the type of its link (1: Ethernet). Raises struct.error or LookupError if it is damaged."""
    (link,) = struct.unpack_from(f"{order}20xI", content)
    at = 24
    while at < len(content):
        captured, _ = struct.unpack_from(f"{order}8xII", content, at)
        yield link & 0xFFFF, _cut(content, at + 16, captured)
        at += 16 + captured


def _pcapng_frames(content: bytes) -> Iterator[tuple[int, bytes]]:
    order, links, at = "<", list[int](), 0
    while at < len(content):
        if content[at : at + 4] == _SECTION.to_bytes(4, "big"):
            order, links = _PCAPNG_BYTE_ORDERS[content[at + 8 : at + 12]], []
        kind, length = struct.unpack_from(f"{order}II", content, at)
        if length < 12:
            raise LookupError
        if kind == _INTERFACE:
            links += struct.unpack_from(f"{order}H", content, at + 8)
        elif kind == _PACKET:
            number, captured = struct.unpack_from(f"{order}I8xI", content, at + 8)
            yield links[number], _cut(content, at + 28, captured)
        at += length


def _cut(content: bytes, at: int, length: int) -> bytes:
    """Return the *length* bytes from *at*. Raises LookupError where there are fewer."""
    if at + length > len(content):
        raise LookupError
    return content[at : at + length]
