"""Receive side scaling: the Toeplitz hash (Microsoft, "RSS Hashing Functions") and the redirection table."""

from __future__ import annotations


class Toeplitz:
    """The 32-bit Toeplitz hash with *key*. Bytes hashed: at most ``len(key) - 4``."""

    def __init__(self, key: bytes) -> None:
        number, bits = int.from_bytes(key, "big"), 8 * len(key)
        # the hash is linear: each byte at each place has 256 contributions, each the XOR of its bits' windows
        self._tables: list[list[int]] = []
        for place in range(len(key) - 4):
            windows = [(number >> (bits - 32 - 8 * place - bit)) & 0xFFFFFFFF for bit in range(8)]
            table = [0] * 256
            for value in range(1, 256):
                low = value & -value
                table[value] = table[value ^ low] ^ windows[8 - low.bit_length()]
            self._tables.append(table)

    def hash(self, data: bytes) -> int:
        """The hash of *data*: source and destination address, then source and destination port, network byte order."""
        result = 0
        for table, value in zip(self._tables, data, strict=False):
            result ^= table[value]
        return result


def queue_of(hash_value: int, reta: int, queues: int) -> int:
    """The receive queue: the low bits choose one of *reta* entries, which drivers fill with the queues in turn."""
    return hash_value % reta % queues
