"""Field-engine programs read into variables, lengths and checksums of a stream's frames.

Facts from TRex's server (src/stx/stl): ranges of inc and dec are widened to a whole number of steps; a tuple's port
moves on when its address wraps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..backend import FieldVariable
from .rpc import Params, bad_parameter, refused

MOST_LENGTHS = 64
"""The most lengths that one stream's frames have here: more are sampled evenly, their mean stays."""
RANDOM_PERIOD = 4096
UDP, TCP, IP = 11, 13, 17
"""``l4_type`` of fix_checksum_hw."""


@dataclass(frozen=True, slots=True)
class FieldProgram:
    """A program in plain data. ``lengths``: of consecutive frames, in bytes without FCS; empty: all have one length.

    ``tied``: those variables, by place, that the lengths follow, with their value for each length. ``udp_checksum``:
    offset of the UDP checksum to be right, which zero is (RFC 768), or None. TCP's checksum stays as it is.
    """

    variables: tuple[FieldVariable, ...] = ()
    fix_ipv4_checksum: int | None = None
    lengths: tuple[int, ...] = ()
    tied: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    udp_checksum: int | None = None

    def of_length(self, place: int) -> tuple[FieldVariable, ...]:
        """The variables in the frames number *place*, *place* + n, …, where n is the number of lengths."""
        return tuple(
            _constant(variable, self.tied[number][place])
            if number in self.tied
            else _every_nth(variable, place, len(self.lengths))
            for number, variable in enumerate(self.variables)
        )


def _constant(variable: FieldVariable, value: int) -> FieldVariable:
    return FieldVariable(variable.offset, variable.size, value, value, value)


def _every_nth(variable: FieldVariable, place: int, step: int) -> FieldVariable:
    """*variable* in each *step*-th frame from *place* on; unchanged where it does not move on in each frame."""
    if variable.operation == "random" or variable.every > 1 or variable.limit:
        return variable
    span, down = variable.maximum - variable.minimum + 1, variable.operation == "dec"
    moved = (variable.initial - variable.minimum + (-place if down else place) * variable.step) % span
    return replace(variable, initial=variable.minimum + moved, step=variable.step * step)


def read_program(instructions: Iterable[Params], frame: bytes) -> FieldProgram:
    """The program of a stream whose packet is *frame*. Raises RpcError, one sentence, for what cannot be sent."""
    found = _ProgramReader(frame)
    for instruction in instructions:
        kind = instruction.text("type")
        if kind not in _INSTRUCTIONS:
            known = ", ".join(_INSTRUCTIONS)
            raise refused(f"unknown field-engine instruction '{kind:.40}'; this server knows {known}")
        _INSTRUCTIONS[kind](found, instruction)
    for name, times in found.used.items():
        if times > 1 and found.known[name].operation == "random" and name != found.trimmed:
            raise refused(f"the field engine uses the random variable '{name:.40}' twice, which this server cannot do")
    tied = {
        number: tuple(length + add for length in found.lengths)
        for number, (name, add) in enumerate(found.sources)
        if name == found.trimmed
    }
    return FieldProgram(tuple(found.written), found.checksum, found.lengths, tied, found.udp_checksum)


class _ProgramReader:
    def __init__(self, frame: bytes) -> None:
        self.frame, self.length = frame, len(frame)
        self.known: dict[str, FieldVariable] = {}
        self.used: Counter[str] = Counter()
        self.written: list[FieldVariable] = []
        self.sources: list[tuple[str, int]] = []
        self.trimmed = ""
        self.checksum: int | None = None
        self.lengths: tuple[int, ...] = ()
        self.udp_checksum: int | None = None

    def _declare(self, instruction: Params) -> None:
        name = instruction.text("name")
        if instruction.text("next_var", ""):
            raise refused(f"flow_var '{name:.40}' has a next_var, which this server does not know")
        self.known[name] = _variable(instruction)

    def _tuple(self, instruction: Params) -> None:
        name = instruction.text("name")
        low, high = (instruction.integer(key, most=2**32 - 1) for key in ("ip_min", "ip_max"))
        first, last = (instruction.integer(key, most=0xFFFF) for key in ("port_min", "port_max"))
        limit = instruction.integer("limit_flows", 0, most=2**32 - 1)
        if high < low or last < first:
            raise bad_parameter(f"tuple_flow_var '{name:.40}': a maximum is below its minimum")
        self.known[f"{name}.ip"] = FieldVariable(0, 4, low, high, low, limit=limit)
        self.known[f"{name}.port"] = FieldVariable(0, 2, first, last, first, every=high - low + 1, limit=limit)

    def _known(self, instruction: Params) -> FieldVariable:
        name = instruction.text("name")
        if name not in self.known:
            raise refused(f"the field engine writes '{name:.40}', which no flow_var before it declares")
        self.used[name] += 1
        return self.known[name]

    def _place(self, instruction: Params, size: int) -> int:
        offset = instruction.integer("pkt_offset", most=0xFFFF)
        if offset + size > self.length:
            kind = instruction.text("type")
            raise refused(f"{kind} at offset {offset} with {size} bytes goes beyond the frame's {self.length} bytes")
        if size > 1 and not instruction.boolean("is_big_endian", True):
            raise refused("writing in little-endian order is not known to this server; expected is_big_endian true")
        return offset

    def _write(self, instruction: Params) -> None:
        variable = self._known(instruction)
        add = instruction.integer("add_value", 0, least=-(2**63), most=2**63 - 1)
        offset = self._place(instruction, variable.size)
        self.written.append(replace(_plus(variable, add), offset=offset))
        self.sources.append((instruction.text("name"), add))

    def _trim(self, instruction: Params) -> None:
        variable = self._known(instruction)
        if self.lengths:
            raise refused("the field engine has trim_pkt_size twice; expected once")
        found = _lengths(variable)
        if min(found) < 14 or max(found) > self.length:
            raise refused(
                f"trim_pkt_size makes frames of {min(found)} to {max(found)} bytes;"
                f" expected 14 to the packet's {self.length}"
            )
        self.lengths, self.trimmed = found, instruction.text("name")

    def _ipv4_checksum(self, instruction: Params) -> None:
        self._checksum(instruction.integer("pkt_offset", most=0xFFFF), "fix_checksum_ipv4")

    def _checksum(self, offset: int, kind: str) -> None:
        if (self.checksum is not None and self.checksum != offset) or offset + 20 > self.length:
            raise refused(f"{kind} at offset {offset}: expected one IPv4 header inside the {self.length} bytes")
        self.checksum = offset

    def _hardware_checksum(self, instruction: Params) -> None:
        l2, l3 = (instruction.integer(key, most=0xFFFF) for key in ("l2_len", "l3_len"))
        kind = instruction.integer("l4_type", most=0xFFFF)
        if kind not in (UDP, TCP, IP):
            raise refused(f"fix_checksum_hw with l4_type {kind}; expected UDP ({UDP}), TCP ({TCP}) or IP ({IP})")
        if l2 + l3 + (8 if kind != IP else 0) > self.length:
            raise refused(f"fix_checksum_hw: no header at offset {l2 + l3} inside the {self.length} bytes")
        if self.frame[l2] >> 4 == 4:
            self._checksum(l2, "fix_checksum_hw")
            if kind == UDP:
                self.udp_checksum = l2 + l3 + 6


_INSTRUCTIONS: dict[str, Callable[[_ProgramReader, Params], None]] = {
    "flow_var": _ProgramReader._declare,
    "tuple_flow_var": _ProgramReader._tuple,
    "write_flow_var": _ProgramReader._write,
    "trim_pkt_size": _ProgramReader._trim,
    "fix_checksum_ipv4": _ProgramReader._ipv4_checksum,
    "fix_checksum_hw": _ProgramReader._hardware_checksum,
}


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


def _plus(variable: FieldVariable, add: int) -> FieldVariable:
    """*variable* with *add* added to what is written, cut off at its bytes."""
    if variable.values:
        return replace(variable, values=tuple(value + add for value in variable.values))
    low, high, first = (value + add for value in (variable.minimum, variable.maximum, variable.initial))
    return replace(variable, minimum=low, maximum=high, initial=first)


def _lengths(variable: FieldVariable) -> tuple[int, ...]:
    """The lengths that *variable* gives consecutive frames, at most LENGTHS of them before they repeat."""
    span = variable.maximum - variable.minimum + 1
    if variable.operation == "random":
        # each equally often, so that the mean is exact
        taken = min(MOST_LENGTHS, span)
        places = [variable.minimum + (2 * number + 1) * span // (2 * taken) for number in range(taken)]
    else:
        period = variable.period(RANDOM_PERIOD)
        step = -variable.step if variable.operation == "dec" else variable.step
        taken = min(MOST_LENGTHS, period)
        turns = [variable.steps_before((2 * number + 1) * period // (2 * taken)) for number in range(taken)]
        if taken == period:
            turns = [variable.steps_before(number) for number in range(taken)]
        places = [variable.minimum + (variable.initial - variable.minimum + turn * step) % span for turn in turns]
    return tuple(variable.values[place] if variable.values else place for place in places)
