"""Classic BPF programs (Linux's Documentation/networking/filter.rst) that classify frames by packet group."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from .group_marks import IPV4, IPV6, MOST_LABELS, MOST_TAGS, MPLS, VLAN, FrameKind

Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, constant."""

MOST_INSTRUCTIONS = 4096
"""Instructions that the kernel takes (BPF_MAXINSNS)."""

_LD_W, _LD_H = 0x20, 0x28
_LD_W_X, _LD_B_X = 0x40, 0x50
_LDX, _LDX_A, _A_X, _ADD, _AND, _SHIFT = 0x01, 0x07, 0x87, 0x04, 0x54, 0x74
_STORE, _RECALL = 0x02, 0x60
_JUMP, _IF, _RETURN = 0x05, 0x15, 0x06
_PROTOCOL, _PACKET_TYPE = 0xFFFFF000, 0xFFFFF004
"""Words that the kernel adds to the frame: its EtherType, and whether it was received or sent."""
_OUTGOING = 4
_FULL_INSTRUCTION = struct.Struct("=HBBI")
_PROGRAM = struct.Struct("@HP")


class _Assembly:
    """Instructions with labels; jumps only go forward, as the kernel requires."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, int | str]] = []
        self._places: dict[str, int] = {}

    def add(self, code: int, constant: int = 0) -> None:
        self._rows.append((code, 0, 0, constant))

    def jump(self, place: str) -> None:
        self._rows.append((_JUMP, 0, 0, place))

    def jump_if(self, value: int, place: str) -> None:
        # conditional jumps reach 255 instructions, others any
        self._rows.append((_IF, 0, 1, value))
        self.jump(place)

    def answer_if(self, value: int, answer: int) -> None:
        self._rows.append((_IF, 0, 1, value))
        self.add(_RETURN, answer)

    def label(self, place: str) -> None:
        self._places[place] = len(self._rows)

    def done(self) -> list[Instruction]:
        return [
            (code, true, false, constant if isinstance(constant, int) else self._places[constant] - number - 1)
            for number, (code, true, false, constant) in enumerate(self._rows)
        ]


def program(answers: Mapping[FrameKind, int], base: int) -> list[Instruction]:
    """A program whose result for a received frame is the answer for its kind, and 0 for any other frame.

    *base*: where the bytes behind the EtherType begin, as the program sees the frame. Raises ValueError when there are
    too many kinds.
    """
    code = _Assembly()
    code.add(_LD_W, _PACKET_TYPE)
    code.jump_if(_OUTGOING, "none")
    code.add(_LDX, base)
    # the kernel has taken the first VLAN tag out already
    code.add(_LD_W, _PROTOCOL)
    for tag in range(MOST_TAGS):
        for value in VLAN:
            code.jump_if(value, f"tag {tag}")
        code.jump("tagged")
        code.label(f"tag {tag}")
        code.add(_LDX, base + 4 * tag + 4)
        code.add(_LD_H, base + 4 * tag + 2)
    code.label("tagged")
    for value in MPLS:
        code.jump_if(value, "label 0")
    code.jump_if(IPV4, "ip")
    code.jump_if(IPV6, "ip")
    code.jump("none")
    for label in range(MOST_LABELS):
        code.label(f"label {label}")
        code.add(_LD_W_X)
        code.add(_AND, 0x100)
        code.add(_STORE)
        code.add(_A_X)
        code.add(_ADD, 4)
        code.add(_LDX_A)
        code.add(_RECALL)
        code.jump_if(0, f"label {label + 1}")
        code.jump("ip")
    code.label(f"label {MOST_LABELS}")
    code.jump("none")
    code.label("ip")
    code.add(_LD_B_X)
    code.add(_AND, 0xF0)
    code.jump_if(0x40, "version 4")
    code.jump_if(0x60, "version 6")
    code.label("none")
    code.add(_RETURN, 0)
    for version in (4, 6):
        code.label(f"version {version}")
        code.add(_LD_W_X, 2)
        mine = {kind: answer for kind, answer in answers.items() if kind.version == version}
        for kind, answer in mine.items():
            if kind.length is not None:
                code.answer_if(kind.word, answer)
        code.add(*((_AND, 0xFFFF) if version == 4 else (_SHIFT, 16)))
        for kind, answer in mine.items():
            if kind.length is None:
                code.answer_if(kind.identification, answer)
        code.add(_RETURN, 0)
    found = code.done()
    if len(found) > MOST_INSTRUCTIONS:
        raise ValueError(
            f"{len(answers)} kinds of frames need {len(found)} instructions, the kernel takes {MOST_INSTRUCTIONS}"
        )
    return found


@contextmanager
def packed(instructions: list[Instruction]) -> Iterator[bytes]:
    """The program as a socket option takes it: ``struct sock_fprog``, which points to memory that lives as long."""
    memory = ctypes.create_string_buffer(b"".join(_FULL_INSTRUCTION.pack(*row) for row in instructions))
    yield _PROGRAM.pack(len(instructions), ctypes.addressof(memory))


TAKES_NOTHING: list[Instruction] = [(_RETURN, 0, 0, 0)]
"""A filter that accepts no frame."""
