"""The words of a project's traffic: ``variables/profiles/*.yaml`` read, and the profile that words of a sentence name."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..config import load
from ..errors import ConfigError, SentenceError
from ..units import FCS
from .files import FlowCountFile, FlowsFile, GenomeFile, HeadersFile, MixFile, ProfileFile, SizesFile, TrexFile
from .profiles import _FACTOR, _FLOWS, _GENOME, _SIZE, ETHERTYPES, AddressRange, Flows, FrameClass, Headers, Profile
from .trex_profile import TrexProfile

Load = Callable[[Path, TrexFile], TrexProfile]
"""Loads a profile in TRex's format from a file. Raises ConfigError, TestbedError."""


@dataclass(frozen=True)
class Catalogue:
    """All traffic words that sentences may use."""

    flows: Mapping[str, FlowsFile]
    mixes: Mapping[str, MixFile]
    sizes: SizesFile
    headers: Mapping[str, HeadersFile] = field(default_factory=dict)
    captures: Mapping[str, Path] = field(default_factory=dict)
    programs: Mapping[str, tuple[TrexFile, Path]] = field(default_factory=dict)
    genome: GenomeFile | None = None
    counts: FlowCountFile | None = None
    load: Load | None = None

    @classmethod
    def read(cls, folder: Path, load_program: Load | None = None) -> Catalogue:
        """Read every ``*.yaml`` of *folder*; *load_program* loads profiles in TRex's format. Raises ConfigError."""
        flows: dict[str, FlowsFile] = {}
        mixes: dict[str, tuple[MixFile, Path]] = {}
        headers: dict[str, HeadersFile] = {}
        captures: dict[str, Path] = {}
        programs: dict[str, tuple[TrexFile, Path]] = {}
        single: dict[str, SizesFile | GenomeFile | FlowCountFile] = {}
        for path in sorted(folder.glob("*.yaml")):
            for entry in load(path, ProfileFile).entries:
                if isinstance(entry, SizesFile | GenomeFile | FlowCountFile):
                    if entry.kind in single:
                        raise ConfigError(f"a second 'kind: {entry.kind}'; there is one for all profiles", path)
                    single[entry.kind] = entry
                    continue
                if any(entry.name in known for known in (flows, mixes, headers, captures, programs)):
                    raise ConfigError(f"the traffic word '{entry.name}' is defined twice", path)
                if isinstance(entry, FlowsFile):
                    flows[entry.name] = entry
                elif isinstance(entry, MixFile):
                    mixes[entry.name] = entry, path
                elif isinstance(entry, HeadersFile):
                    headers[entry.name] = entry
                elif isinstance(entry, TrexFile):
                    programs[entry.name] = entry, path.parent / entry.file
                else:
                    captures[entry.name] = path.parent / entry.file
        sizes, genome, counts = (single.get(kind) for kind in ("sizes", "genome", "flow-count"))
        if not isinstance(sizes, SizesFile) or sum(item.default for item in flows.values()) != 1:
            raise ConfigError("needs one 'kind: sizes' and exactly one 'kind: flows' with 'default: true'", folder)
        found = cls(
            flows,
            {name: mix for name, (mix, _) in mixes.items()},
            sizes,
            headers,
            captures,
            programs,
            genome if isinstance(genome, GenomeFile) else None,
            counts if isinstance(counts, FlowCountFile) else None,
            load_program,
        )
        for name, (_, path) in mixes.items():
            try:
                found.frames(name)
            except SentenceError as error:
                raise ConfigError(f"the mix '{name}': {error}", path) from None
        return found

    def files(self) -> list[Path]:
        """Captures and profiles in TRex's format that words stand for, beside the YAML files."""
        return sorted({*self.captures.values(), *(path for _, path in self.programs.values())})

    def words(self) -> list[str]:
        """What a sentence may say of traffic, for messages."""
        return [
            *("64b", "1514b", "<bytes>b", *self.mixes, *self.captures, *self.programs),
            *([_GENOME + "<letters>"] if self.genome else []),
            *self.flows,
            *(["<N>-flows"] if self.counts else []),
            *self.headers,
        ]

    def is_word(self, word: str) -> bool:
        """Whether *word* speaks of traffic."""
        return self._says_frames(word) or self._says_flows(word) or word in self.headers

    def _says_frames(self, word: str) -> bool:
        genome = self.genome is not None and word.startswith(_GENOME)
        files = word in self.captures or word in self.programs
        return bool(_SIZE.match(word)) or word in self.mixes or files or genome

    def _says_flows(self, word: str) -> bool:
        return word in self.flows or (self.counts is not None and bool(_FLOWS.match(word)))

    def profile(self, words: list[str]) -> Profile:
        """The profile that *words* name, in any order.

        Raises SentenceError, and for a capture or a profile of TRex's format ConfigError or TestbedError.
        """
        for word in words:
            if not self.is_word(word):
                raise SentenceError(f"'{word}' is not a traffic word; known: {', '.join(self.words())}")
        sized = _only("which frames", [word for word in words if self._says_frames(word)])
        flowed = _only("which flows", [word for word in words if self._says_flows(word)])
        wrapped = [word for word in words if word in self.headers]
        if not sized:
            known = ["64b", "1514b", *self.mixes, *self.captures, *self.programs]
            raise SentenceError(f"no frame size; expected one of {', '.join(known)}")
        name = " ".join((sized, *(word for word in words if word != sized)))
        if sized in self.captures or sized in self.programs:
            if flowed or wrapped:
                own = f"'{sized}' brings its own headers and addresses"
                raise SentenceError(f"{own}; expected without '{' '.join([*wrapped, flowed]).strip()}'")
            return _captured(name, self.captures[sized]) if sized in self.captures else self._programmed(name)
        frames, headers = self.frames(sized), self._headers(wrapped)
        least, smallest = headers.size + FCS, min(frame.size for frame in frames)
        if smallest < least:
            said = f"the {smallest}-byte frames of '{sized}'" if len(frames) > 1 else f"a frame of {smallest} bytes"
            beside = " ".join(wrapped)
            right = f"'{least}b {beside}' or more" if len(frames) == 1 else f"frames of {least} bytes or more"
            held = f"the headers of {headers} and the FCS, {least} bytes"
            raise SentenceError(f"'{name}': {said} cannot hold {held}; expected {right}")
        return Profile(name, frames, self._flows(flowed), headers)

    def _programmed(self, name: str) -> Profile:
        entry, path = self.programs[name]
        if self.load is None:
            raise SentenceError(f"'{name}' is a profile in TRex's format, which is not loaded here")
        program = self.load(path, entry)
        source, destination = (_between(*ends) for ends in program.addresses)
        flows = Flows(source, destination, captured=program.flows, known=program.flows > 0)
        frames = tuple(FrameClass(size, part) for size, part in program.sizes())
        return Profile(name, frames, flows, program=program)

    def frames(self, word: str) -> tuple[FrameClass, ...]:
        """The frames that a size, a mix or a genome names. Raises SentenceError."""
        if word in self.mixes:
            mix = self.mixes[word]
            if mix.genome:
                return self._genome(mix.genome, mix.custom)
            return tuple(FrameClass(frame.size, frame.weight) for frame in mix.frames)
        if word.startswith(_GENOME):
            return self._genome(word.removeprefix(_GENOME), {})
        return (FrameClass(self._size(word)),)

    def _size(self, word: str) -> int:
        found = _SIZE.match(word)
        if not found:
            raise SentenceError(f"'{word}' is not a frame size; expected for example '64b'")
        named = int(found[1])
        size = named + FCS if named in self.sizes.named_without_fcs else named
        if not self.sizes.smallest <= size <= self.sizes.largest:
            raise SentenceError(f"'{word}': frames are {self.sizes.smallest} to {self.sizes.largest} bytes with FCS")
        return size

    def _genome(self, letters: str, custom: Mapping[str, int]) -> tuple[FrameClass, ...]:
        """Each size as often as its letter occurs, in the order of their first letters (RFC 6985 4)."""
        if self.genome is None:
            raise SentenceError("a genome needs a 'kind: genome' among the profiles, which says what its letters mean")
        known = {**self.genome.letters, **custom}
        allowed = {letter: size for letter, size in known.items() if size <= self.sizes.largest}
        right = ", ".join(f"{letter}={size}" for letter, size in allowed.items())
        if not 0 < len(letters) <= self.genome.longest:
            raise SentenceError(f"a genome has 1 to {self.genome.longest} letters; expected of {right}")
        for letter in letters:
            if letter not in known:
                also = "; capital letters are sizes of one's own, for a 'kind: mix'" if letter.isupper() else ""
                raise SentenceError(f"'{letter}' is no letter of the genome{also}; expected {right}")
            if letter not in allowed:
                most = f"more than the {self.sizes.largest} that frames have at most here"
                raise SentenceError(f"'{letter}' means {known[letter]} bytes, {most}; expected {right}")
        counted = Counter(known[letter] for letter in letters)
        return tuple(FrameClass(size, weight) for size, weight in counted.items())

    def _flows(self, word: str) -> Flows:
        found = _FLOWS.match(word)
        if word not in self.flows and found and self.counts:
            ports = self.counts.source_port, self.counts.destination_port
            number = int(found[1]) * _FACTOR[found[2]]
            if not 2 <= number <= self.counts.most:
                raise SentenceError(f"'{word}': expected '1-flow', or 2 to {self.counts.most} flows")
            first, only = ipaddress.IPv4Address(self.counts.source), self.counts.destination
            return Flows(AddressRange(str(first), str(first + number - 1)), AddressRange(only, only), *ports)
        chosen = self.flows[word] if word else next(item for item in self.flows.values() if item.default)
        return Flows(
            AddressRange(chosen.source.first, chosen.source.last, chosen.source.step),
            AddressRange(chosen.destination.first, chosen.destination.last, chosen.destination.step),
            chosen.source_port,
            chosen.destination_port,
        )

    def _headers(self, words: list[str]) -> Headers:
        said = [self.headers[word] for word in words]
        tagged = _only("which VLAN tags", [item.name for item in said if item.tags])
        labelled = _only("which MPLS labels", [item.name for item in said if item.labels])
        prefixed = _only("which IPv6 addresses", [item.name for item in said if item.prefix])
        carried = _only("which transport", [item.name for item in said if item.transport])
        return Headers(
            tuple((ETHERTYPES[tag.protocol], tag.vlan) for tag in self.headers[tagged].tags) if tagged else (),
            self.headers[labelled].labels if labelled else (),
            self.headers[labelled].labels_back if labelled else (),
            self.headers[prefixed].prefix if prefixed else "",
            "tcp" if carried else "udp",
        )


def _only(what: str, words: list[str]) -> str:
    """The one of *words*, empty where there is none. Raises SentenceError."""
    if len(words) > 1:
        raise SentenceError(f"'{words[0]}' and '{words[1]}' both say {what}; keep one")
    return words[0] if words else ""


def _captured(name: str, path: Path) -> Profile:
    # the capture library is needed by those alone who have captures
    from .captures import read_capture

    capture = read_capture(path)
    frames = tuple(FrameClass(len(data) + FCS, weight, data) for data, weight in capture.frames)
    source, destination = _between(*capture.sources), _between(*capture.destinations)
    return Profile(name, frames, Flows(source, destination, captured=capture.flows))


def _between(first: int, last: int) -> AddressRange:
    return AddressRange(str(ipaddress.IPv4Address(first)), str(ipaddress.IPv4Address(last)))
