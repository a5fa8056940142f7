"""Field-engine programs read into variables, lengths and checksums of a stream's frames.

Facts from TRex's server (src/stx/stl): ranges of inc and dec are widened to a whole number of steps; a tuple's port
moves on when its address wraps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from ..backend import FieldVariable
from .rpc import Params, bad_parameter, refused

MOST_LENGTHS = 64
"""The most lengths that one stream's frames have here: more are sampled evenly, their mean stays."""
UDP, TCP, IP = 11, 13, 17
"""``l4_type`` of fix_checksum_hw."""


class FieldProgram:
    """The program of a stream whose packet is *frame*. Raises RpcError, one sentence, for what cannot be sent.

    ``lengths``: of consecutive frames, in bytes without FCS; empty: all have one length. ``fix_ipv4_checksum``: offset
    of that header, or None. ``udp_checksum``: offset of the UDP checksum to be right, which zero is (RFC 768), or None.
    TCP's checksum stays as it is.
    """

    def __init__(self, instructions: Iterable[Params], frame: bytes) -> None:
        self._frame = frame
        self._known: dict[str, FieldVariable] = {}
        self._used: Counter[str] = Counter()
        self._written: list[tuple[str, int, FieldVariable]] = []
        """What is written: name of the variable, what is added to it, and the sum."""
        self._trimmed = ""
        """Name of the variable that the lengths follow."""
        self.lengths: tuple[int, ...] = ()
        self.fix_ipv4_checksum: int | None = None
        self.udp_checksum: int | None = None
        for instruction in instructions:
            kind = instruction.text("type")
            if kind not in _INSTRUCTIONS:
                known = ", ".join(_INSTRUCTIONS)
                raise refused(f"unknown field-engine instruction '{kind:.40}'; this server knows {known}")
            _INSTRUCTIONS[kind](self, instruction)
        for name, times in self._used.items():
            if times > 1 and self._known[name].operation == "random" and name != self._trimmed:
                raise refused(
                    f"the field engine uses the random variable '{name:.40}' twice, which this server cannot do"
                )

    @property
    def variables(self) -> tuple[FieldVariable, ...]:
        """The variables that are written into frames of one length."""
        return tuple(variable for _, _, variable in self._written)

    def of_length(self, place: int) -> tuple[FieldVariable, ...]:
        """The variables in the frames number *place*, *place* + n, …, where n is the number of lengths."""
        found = []
        for name, add, variable in self._written:
            if name == self._trimmed:
                value = self.lengths[place] + add
                found.append(FieldVariable(variable.offset, variable.size, value, value, value))
            else:
                found.append(_every_nth(variable, place, len(self.lengths)))
        return tuple(found)

    def _declare(self, instruction: Params) -> None:
        name = instruction.text("name")
        if instruction.text("next_var", ""):
            raise refused(f"flow_var '{name:.40}' has a next_var, which this server does not know")
        self._known[name] = _variable(instruction)

    def _tuple(self, instruction: Params) -> None:
        name = instruction.text("name")
        low, high = (instruction.integer(key, most=2**32 - 1) for key in ("ip_min", "ip_max"))
        first, last = (instruction.integer(key, most=0xFFFF) for key in ("port_min", "port_max"))
        limit = instruction.integer("limit_flows", 0, most=2**32 - 1)
        if high < low or last < first:
            raise bad_parameter(f"tuple_flow_var '{name:.40}': a maximum is below its minimum")
        self._known[f"{name}.ip"] = FieldVariable(0, 4, low, high, low, limit=limit)
        self._known[f"{name}.port"] = FieldVariable(0, 2, first, last, first, every=high - low + 1, limit=limit)

    def _use(self, instruction: Params) -> tuple[str, FieldVariable]:
        name = instruction.text("name")
        if name not in self._known:
            raise refused(f"the field engine writes '{name:.40}', which no flow_var before it declares")
        self._used[name] += 1
        return name, self._known[name]

    def _write(self, instruction: Params) -> None:
        name, variable = self._use(instruction)
        add = instruction.integer("add_value", 0, least=-(2**63), most=2**63 - 1)
        offset, length = instruction.integer("pkt_offset", most=0xFFFF), len(self._frame)
        if offset + variable.size > length:
            beyond = f"at offset {offset} with {variable.size} bytes goes beyond the frame's {length} bytes"
            raise refused(f"write_flow_var {beyond}")
        if variable.size > 1 and not instruction.boolean("is_big_endian", True):
            raise refused("writing in little-endian order is not known to this server; expected is_big_endian true")
        if variable.values:
            moved = replace(variable, values=tuple(value + add for value in variable.values))
        else:
            low, high, first = (value + add for value in (variable.minimum, variable.maximum, variable.initial))
            moved = replace(variable, minimum=low, maximum=high, initial=first)
        self._written.append((name, add, replace(moved, offset=offset)))

    def _trim(self, instruction: Params) -> None:
        name, variable = self._use(instruction)
        found, length = _lengths(variable), len(self._frame)
        if self.lengths or min(found) < 14 or max(found) > length:
            raise refused(
                f"trim_pkt_size makes frames of {min(found)} to {max(found)} bytes; expected it once, with 14 to the"
                f" packet's {length}"
            )
        self.lengths, self._trimmed = found, name

    def _ipv4_checksum(self, instruction: Params) -> None:
        self._fix(instruction.integer("pkt_offset", most=0xFFFF), "fix_checksum_ipv4")

    def _fix(self, offset: int, kind: str) -> None:
        if self.fix_ipv4_checksum not in (None, offset) or offset + 20 > len(self._frame):
            raise refused(f"{kind} at offset {offset}: expected one IPv4 header inside the {len(self._frame)} bytes")
        self.fix_ipv4_checksum = offset

    def _hardware_checksum(self, instruction: Params) -> None:
        l2, l3, kind = (instruction.integer(key, most=0xFFFF) for key in ("l2_len", "l3_len", "l4_type"))
        if kind not in (UDP, TCP, IP) or l2 + l3 + 8 * (kind != IP) > len(self._frame):
            raise refused(
                f"fix_checksum_hw with l4_type {kind} at offset {l2 + l3}; expected UDP ({UDP}), TCP ({TCP}) or IP"
                f" ({IP}), inside the {len(self._frame)} bytes"
            )
        if self._frame[l2] >> 4 == 4:
            self._fix(l2, "fix_checksum_hw")
            if kind == UDP:
                self.udp_checksum = l2 + l3 + 6


_INSTRUCTIONS: dict[str, Callable[[FieldProgram, Params], None]] = {
    "flow_var": FieldProgram._declare,
    "tuple_flow_var": FieldProgram._tuple,
    "write_flow_var": FieldProgram._write,
    "trim_pkt_size": FieldProgram._trim,
    "fix_checksum_ipv4": FieldProgram._ipv4_checksum,
    "fix_checksum_hw": FieldProgram._hardware_checksum,
}


def _every_nth(variable: FieldVariable, place: int, step: int) -> FieldVariable:
    """*variable* in each *step*-th frame from *place* on; unchanged where it does not move on in each frame."""
    if variable.operation == "random" or variable.every > 1 or variable.limit:
        return variable
    return replace(variable, initial=variable.value(place), step=variable.step * step)


def _variable(instruction: Params) -> FieldVariable:
    name, size = instruction.text("name"), instruction.integer("size")
    if size not in (1, 2, 4, 8):
        raise bad_parameter(f"flow_var '{name:.40}' has size {size}; expected 1, 2, 4 or 8 bytes")
    operation = instruction.choice("op", ("inc", "dec", "random"))
    most = 256**size - 1
    step = instruction.integer("step", 1, least=1, most=most)
    if "value_list" in instruction:
        values = tuple(instruction.integers("value_list"))
        if not 0 < len(values) <= 0xFFFF or not all(0 <= value <= most for value in values) or step > len(values):
            raise bad_parameter(
                f"flow_var '{name:.40}': expected a value_list of 1 to 65535 values of {size} bytes"
                " and a step within its length"
            )
        return FieldVariable(0, size, 0, len(values) - 1, 0, step, operation, values=values)
    low, high, first = (instruction.integer(key, most=most) for key in ("min_value", "max_value", "init_value"))
    if not low <= first <= high:
        raise bad_parameter(
            f"flow_var '{name:.40}': init_value {first} is not within min_value {low} and max_value {high}"
        )
    if operation != "random":
        missing = -(high - low + 1) % step
        low, high = (low, high + missing) if operation == "inc" else (low - missing, high)
        if low < 0 or high > most:
            raise refused(
                f"flow_var '{name:.40}': max_value - min_value + 1 is not a multiple of step {step}"
                " and has no room to be"
            )
    return FieldVariable(0, size, low, high, first, step, operation)


def _lengths(variable: FieldVariable) -> tuple[int, ...]:
    """The lengths that *variable* gives consecutive frames, at most MOST_LENGTHS of them before they repeat."""
    span = variable.maximum - variable.minimum + 1
    # of a random one each equally often, so that the mean is exact
    period = span if variable.operation == "random" else variable.period(0)
    taken = min(MOST_LENGTHS, period)
    numbers = range(period) if taken == period else [(2 * at + 1) * period // (2 * taken) for at in range(taken)]
    if variable.operation == "random":
        variable = replace(variable, operation="inc", initial=variable.minimum, step=1)
    return tuple(variable.written(number) for number in numbers)
