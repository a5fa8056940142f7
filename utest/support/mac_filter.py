"""A card that drops frames for other MAC addresses, on a veth: ``mac_filter.py INTERFACE MAC``, in its namespace.

An XDP program in front of everything that receives, AF_PACKET too. It prints a line once it filters, and ends with its
standard input. Numbers are those of the kernel's UAPI header ``linux/bpf.h``.
"""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import struct
import sys

SYSCALL = {"x86_64": 321, "aarch64": 280}
PROG_LOAD, LINK_CREATE, XDP_PROGRAM, XDP_ATTACHMENT, GENERIC = 5, 28, 6, 37, 2
DROP, PASS = 1, 2


def instruction(code: int, to: int = 0, source: int = 0, offset: int = 0, number: int = 0) -> bytes:
    return struct.pack("<BBhi", code, source << 4 | to, offset, number)


def program(mac: bytes) -> bytes:
    """Pass frames whose first six bytes are *mac*, drop the others."""
    first, second = struct.unpack("<iH", mac)
    return b"".join(
        (
            instruction(0x61, 2, 1, 0),  # r2 = the frame's begin
            instruction(0x61, 3, 1, 4),  # r3 = its end
            instruction(0xBF, 4, 2),
            instruction(0x07, 4, number=6),
            instruction(0x2D, 4, 3, 6),  # shorter: drop
            instruction(0x61, 5, 2, 0),
            instruction(0x56, 5, offset=4, number=first),  # other: drop
            instruction(0x69, 5, 2, 4),
            instruction(0x56, 5, offset=2, number=second),  # other: drop
            instruction(0xB7, 0, number=PASS),
            instruction(0x95),
            instruction(0xB7, 0, number=DROP),
            instruction(0x95),
        )
    )


def bpf(command: int, attributes: bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    data = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    found = int(libc.syscall(SYSCALL[platform.machine()], command, data, 128))
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found


def main(interface: str, mac: str) -> None:
    code = program(bytes.fromhex(mac.replace(":", "")))
    instructions, licence = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
    head = struct.pack("<II", XDP_PROGRAM, len(code) // 8)
    loaded = bpf(PROG_LOAD, head + struct.pack("<QQ", ctypes.addressof(instructions), ctypes.addressof(licence)))
    # it is attached as long as this process holds it
    bpf(LINK_CREATE, struct.pack("<IIII", loaded, socket.if_nametoindex(interface), XDP_ATTACHMENT, GENERIC))
    print("filters", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
