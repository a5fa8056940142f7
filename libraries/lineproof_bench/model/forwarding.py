"""From offered to forwarded rates: pure functions. Rates in frames/s, sizes in bytes with FCS, cycles of the clock.

At the end: what the queues of the card, its ports and the bus that they share let in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil, inf
from typing import NamedTuple

from lineproof.units import FCS, l1_bits

from ..backend import StreamTraffic
from .routing import Flow, spread
from .schema import Nic, RouterModel, Rss

Route = Callable[[Flow | None], int | None]
"""The port where a flow leaves; None: the router has no route for it."""


class StreamPart(NamedTuple):
    """The *share* of a stream's frames that has one receive queue and one exit port (None: not routed).

    ``cycles``: what their headers cost beyond those of untagged IPv4. ``ipv6``: whether they are IPv6, unlabelled.
    """

    queue: int
    exit: int | None
    share: float
    cycles: float = 0.0
    ipv6: bool = False


class StreamLoad(NamedTuple):
    """One stream: it enters by *port* at *pps* frames/s of *size* bytes, in *parts*."""

    port: int
    pps: float
    size: int
    parts: tuple[StreamPart, ...]


@dataclass(frozen=True, slots=True)
class Fate:
    """Shares of a stream's frames: missed by the NIC; unroutable, of the rest; dropped at tx, of the rest of that.

    ``forwarded``: share of the frames offered that leave. ``excess``: per (queue, exit) the share of the
    offered frames that comes faster than it is handled. It is missed unless a ring has room
    (:class:`.counting.ReceiveRings`): ``held`` is the share that waits there, of what is not missed.
    """

    missed: float
    no_route: float
    tx_dropped: float
    exits: Mapping[int, float]
    excess: Mapping[tuple[int, int | None], float] = field(default_factory=dict)
    held: float = 0.0

    @property
    def forwarded(self) -> float:
        """Share of the offered frames that leave the router."""
        return sum(self.exits.values())


@dataclass(frozen=True, slots=True)
class CoreLoad:
    """A core: frames/s handled, those per exit (None: not routed), vector size, cycles per frame, busy share 0..1.

    ``sent``: frames/s per exit that found room in the sending ring.
    """

    pps: float
    exits: Mapping[int | None, float]
    vector: float
    cycles: float
    busy: float
    sent: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Forwarding:
    """Fates of all streams, in the order given, and the workers' load. ``contention``: cycles per frame."""

    fates: tuple[Fate, ...] = ()
    workers: tuple[CoreLoad, ...] = field(default_factory=tuple)
    contention: float = 0.0


def worker_of(model: RouterModel, port: int, queue: int) -> int:
    """Return the worker that *queue* of *port* is placed on."""
    first = port * model.rx_queues if model.software.placement == "continuing" else 0
    return (first + queue) % model.workers


def placement(model: RouterModel, ports: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return the (port, queue) pairs of each worker."""
    queues: list[list[tuple[int, int]]] = [[] for _ in range(model.workers)]
    for port in range(ports):
        for queue in range(model.rx_queues):
            queues[worker_of(model, port, queue)].append((port, queue))
    return tuple(tuple(row) for row in queues)


@lru_cache(maxsize=8)
def _hasher(rss: Rss) -> Toeplitz:
    return Toeplitz(rss.key_bytes)


@lru_cache(maxsize=32)
def _hashed_flows(rss: Rss, stream: StreamTraffic) -> list[tuple[Flow | None, int, float]]:
    """Return the flows of *stream*, each with its hash (0 of frames that are not IP) and its share of the frames."""
    hasher, flows = _hasher(rss), list[tuple[Flow | None, int, float]]()
    for flow, share in spread(stream).items():
        hashed = flow.hashed if flow and not (flow.labels and rss.mpls == "none") else b""
        if flow and rss.fields == "2-tuple":
            hashed = hashed[: 8 if flow.version == 4 else 32]
        flows.append((flow, hasher.hash(hashed), share))
    return flows


def parts_of(model: RouterModel, stream: StreamTraffic, route: Route) -> tuple[StreamPart, ...]:
    """Return how *stream* spreads over receive queues and exits. Frames that are not IP take queue 0."""
    cost, queues = model.software.cost, model.rx_queues
    crossing = cost.crossing_far if queues > model.socket_cores else cost.crossing
    shares: defaultdict[tuple[int, int | None, float, bool], float] = defaultdict(float)
    for flow, value, share in _hashed_flows(model.software.rss, replace(stream, stream_id=0, pps=0.0, group=None)):
        # the low bits choose an entry of the table, which drivers fill with the queues in turn
        queue = value % model.nic.reta % queues
        is_ipv6 = flow is not None and flow.version == 6 and not flow.labels
        cycles = (cost.layer * len(flow.tags) if flow else 0.0) + (cost.ipv6 * cost.packet if is_ipv6 else 0.0)
        if model.nic.sends_by == "hash" and value % queues != queue:
            cycles += crossing
        shares[queue, route(flow), cycles, is_ipv6] += share
    return tuple(
        StreamPart(queue, direction, share, cycles, ipv6) for (queue, direction, cycles, ipv6), share in shares.items()
    )


def cost_per_frame(model: RouterModel, size: float, vector: float) -> float:
    """Return the cycles that a frame of *size* bytes costs in a vector of *vector*, without contention."""
    cost = model.software.cost
    return cost.packet + cost.input + cost.byte * (size - FCS) + cost.call / vector


def vector_size(model: RouterModel, pps: float, cycles: float) -> float:
    """Return the frames per vector of a worker that handles *pps*; each costs *cycles* beside the cost per call.

    A round takes a fixed time plus that of its frames, and brings what arrived in the round before:
    v = 1 + pps * gather / (1 - pps * cycles / clock), at most the maximum.
    """
    settings = model.software.vectors
    if settings is None:
        return 1.0
    free = 1 - pps * cycles / model.clock_hz
    if free <= 0:
        return float(settings.maximum)
    return min(float(settings.maximum), 1 + pps * settings.gather_us * 1e-6 / free)


def forward(model: RouterModel, loads: Sequence[StreamLoad]) -> Forwarding:
    """Return how *loads* are forwarded.

    Contention depends on forwarded rates, which depend on contention: one fixed point. The rates fall as contention
    grows, so it is unique and found by bisection.
    """
    entering = admitted(model.nic, arrivals_of(loads))
    contention = _contention(model, loads, entering, [1.0] * model.workers)
    # if even the highest contention costs no frame, it is the real one
    if contention > 0 and min(_served(model, loads, entering, contention)) < 1:
        contention = _fixed_point(
            lambda assumed: _contention(model, loads, entering, _served(model, loads, entering, assumed)), contention
        )
    return _result(model, loads, entering, _served(model, loads, entering, contention), contention)


def _fixed_point(falling: Callable[[float], float], high: float) -> float:
    """Return where *falling* gives what it is given, between 0 and *high*."""
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        if falling(middle) > middle:
            low = middle
        else:
            high = middle
    return high


Entering = Mapping[tuple[int, int], float]
"""Per (port, queue) the share of its frames that the card lets in."""


def arrivals_of(loads: Sequence[StreamLoad]) -> list[QueueArrival]:
    """Return the frames for each receive queue, in the order of *loads* and their parts."""
    return [
        QueueArrival(load.port, part.queue, load.pps * part.share, load.size) for load in loads for part in load.parts
    ]


def _served(model: RouterModel, loads: Sequence[StreamLoad], entering: Entering, contention: float) -> list[float]:
    """Return for each worker the share of its frames that it can handle: it takes from its queues in proportion."""
    wanted = [0.0] * model.workers
    for load in loads:
        cycles = cost_per_frame(model, load.size, model.maximum_vector) + contention
        for part in load.parts:
            enters = load.pps * part.share * entering[load.port, part.queue]
            wanted[worker_of(model, load.port, part.queue)] += enters * (cycles + part.cycles)
    return [min(1.0, model.clock_hz / cycles) if cycles else 1.0 for cycles in wanted]


def _contention(model: RouterModel, loads: Sequence[StreamLoad], entering: Entering, served: Sequence[float]) -> float:
    cost = model.software.cost
    mpps: defaultdict[int, float] = defaultdict(float)
    workers, ipv6 = [0.0] * model.workers, 0.0
    for load in loads:
        for part in load.parts:
            worker = worker_of(model, load.port, part.queue)
            handled = load.pps * part.share * entering[load.port, part.queue] * served[worker]
            mpps[load.port] += handled / 1e6
            workers[worker] += handled
            ipv6 += handled * part.ipv6
    # the rate in both directions at once: twice the lower one
    first, second = (*sorted(mpps.values(), reverse=True), 0.0, 0.0)[:2]
    duplex = 2 * min(first, second)
    return cost.shared * sum(mpps.values()) + cost.duplex * duplex**2 + _lock(model, workers, ipv6)


def _lock(model: RouterModel, workers: Sequence[float], ipv6: float) -> float:
    """Return the cycles per frame at the locks, with waiting. *workers*: frames/s of each core; *ipv6*: of IPv6."""
    users, total = min(effective(workers), len(workers) / model.threads), sum(workers)
    held = [lock.held(users, ipv6 / total if total else 0.0) for lock in model.software.cost.locks]
    return sum(waiting(cycles, cycles * total / model.clock_hz, users) for cycles in held)


def _result(
    model: RouterModel, loads: Sequence[StreamLoad], entering: Entering, served: Sequence[float], contention: float
) -> Forwarding:
    rows: list[tuple[float, dict[tuple[int, int | None], float], dict[tuple[int, int | None], float]]] = []
    pps = [0.0] * model.workers
    variable = [0.0] * model.workers
    exits: list[defaultdict[int | None, float]] = [defaultdict(float) for _ in range(model.workers)]
    for load in loads:
        handled: defaultdict[tuple[int, int | None], float] = defaultdict(float)
        excess: defaultdict[tuple[int, int | None], float] = defaultdict(float)
        cycles = cost_per_frame(model, load.size, inf) + contention
        for part in load.parts:
            worker, enters = worker_of(model, load.port, part.queue), entering[load.port, part.queue]
            share = part.share * enters * served[worker]
            if enters < 1 or served[worker] < 1:
                excess[part.queue, part.exit] += part.share - share
            handled[worker, part.exit] += share
            pps[worker] += load.pps * share
            variable[worker] += load.pps * share * (cycles + part.cycles)
            exits[worker][part.exit] += load.pps * share
        # exactly none missed where nothing limits: shares that sum to almost 1 would lose a frame in a billion
        rows.append((max(0.0, 1 - sum(handled.values())) if excess else 0.0, dict(handled), dict(excess)))
    fits = _fits_out(model, loads, [handled for _, handled, _ in rows], exits)
    fates = tuple(replace(_fate(missed, handled, fits), excess=excess) for missed, handled, excess in rows)
    workers = tuple(
        _worker(model, n, pps[n], variable[n] / pps[n] if pps[n] else 0.0, exits[n], fits) for n in range(model.workers)
    )
    return Forwarding(fates, workers, contention)


Fits = Mapping[tuple[int, int], float]
"""Per (worker, exit) the share of its frames that leave."""


def _fits_out(
    model: RouterModel,
    loads: Sequence[StreamLoad],
    handled: Sequence[Mapping[tuple[int, int | None], float]],
    exits: Sequence[Mapping[int | None, float]],
) -> Fits:
    """Return what fits into the sending rings, one of each worker for each port, and of that onto the line."""
    ring = (model.nic.tx_mpps or inf) * 1e6
    fits = {
        (worker, leaves): _share_that_fits(ring, rate)
        for worker, own in enumerate(exits)
        for leaves, rate in own.items()
        if leaves is not None
    }
    bits: defaultdict[int, float] = defaultdict(float)
    for load, shares in zip(loads, handled, strict=True):
        for (worker, leaves), share in shares.items():
            if leaves is not None:
                bits[leaves] += load.pps * share * fits[worker, leaves] * l1_bits(load.size)
    line = {leaves: _share_that_fits(model.speeds[leaves], rate) for leaves, rate in bits.items()}
    return {(worker, leaves): share * line[leaves] for (worker, leaves), share in fits.items()}


def _share_that_fits(limit: float, rate: float) -> float:
    """Return the share of *rate* that fits into *limit*; exactly 1 where rounding alone is too much."""
    return limit / rate if rate > limit * (1 + 1e-9) else 1.0


def _fate(missed: float, shares: Mapping[tuple[int, int | None], float], fits: Fits) -> Fate:
    handled = sum(shares.values())
    lost = sum(share for (_, leaves), share in shares.items() if leaves is None)
    routed = {(worker, leaves): share for (worker, leaves), share in shares.items() if leaves is not None}
    out: defaultdict[int, float] = defaultdict(float)
    for (worker, leaves), share in routed.items():
        out[leaves] += share * fits[worker, leaves]
    whole = all(fits[key] >= 1 for key in routed)
    routed_sum = sum(routed.values())
    no_route = 1.0 if not out else lost / handled if handled and lost else 0.0
    dropped = 0.0 if whole or not routed_sum else max(0.0, 1 - sum(out.values()) / routed_sum)
    return Fate(missed, no_route, dropped, dict(out))


def _worker(
    model: RouterModel, number: int, pps: float, cycles: float, exits: Mapping[int | None, float], fits: Fits
) -> CoreLoad:
    vector = vector_size(model, pps, cycles)
    cycles += model.software.cost.call / vector
    busy = min(1.0, pps * cycles / model.clock_hz)
    sent = {leaves: rate * fits[number, leaves] for leaves, rate in exits.items() if leaves is not None}
    return CoreLoad(pps, dict(exits), vector, cycles if pps else 0.0, busy, sent)


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
        """Return the hash of *data*: source and destination address, then their ports, in network byte order."""
        result = 0
        for table, value in zip(self._tables, data, strict=False):
            result ^= table[value]
        return result


class QueueArrival(NamedTuple):
    """Frames for one receive queue: ``port``, ``queue``, ``pps`` frames/s of ``size`` bytes with FCS."""

    port: int
    queue: int
    pps: float
    size: float


def effective(rates: Sequence[float]) -> float:
    """Return how many equal rates would be as uneven as *rates*: (Σr)² / Σr²; 1 when there are none."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / squares if squares else 1.0


def waiting(service: float, load: float, users: float) -> float:
    """Return the time at a server of *users*, each with one request at most; *load*: their rate times *service*.

    An arriving request finds the others' queue, not its own (Schweitzer's approximation of mean value analysis):
    service / (1 - load * (users - 1) / users), at most all users' requests one after the other.
    """
    free = 1 - load * (1 - 1 / max(1.0, users))
    worst = max(1.0, users) * service
    return min(worst, service / free) if free > 0 else worst


def bus_seconds(nic: Nic, size: float, both: float) -> float:
    """Return the s that a frame of *size* bytes needs the bus. *both*: how evenly both directions are loaded, 0..1."""
    if nic.pcie is None:
        return 0.0
    data, pcie = size - FCS, nic.pcie
    total = data + pcie.header * ceil(data / pcie.payload) + nic.descriptors
    return 8 * total / (pcie.gbps * 1e9 * (1 - pcie.duplex * both))


def both_directions(per_port: Mapping[int, float]) -> float:
    """Return how evenly two ports are loaded: 0 when one has all, 1 when the two busiest have the same."""
    first, second = (*sorted(per_port.values(), reverse=True), 0.0, 0.0)[:2]
    return 2 * second / (first + second) if second else 0.0


def admitted(nic: Nic, arrivals: Sequence[QueueArrival]) -> dict[tuple[int, int], float]:
    """Return for each (port, queue) the share of its frames that reach the queue's ring."""
    per_queue: defaultdict[tuple[int, int], float] = defaultdict(float)
    for row in arrivals:
        per_queue[row.port, row.queue] += row.pps
    seconds = seconds_per_frame(nic, arrivals)
    shares = {key: min(1.0, 1 / (pps * seconds)) if pps * seconds > 0 else 1.0 for key, pps in per_queue.items()}
    if nic.port_mpps:
        taken: defaultdict[int, float] = defaultdict(float)
        for (port, queue), pps in per_queue.items():
            taken[port] += pps * shares[port, queue]
        fits = {port: min(1.0, nic.port_mpps * 1e6 / pps) if pps else 1.0 for port, pps in taken.items()}
        shares = {key: share * fits[key[0]] for key, share in shares.items()}
    return shares


def seconds_per_frame(nic: Nic, arrivals: Sequence[QueueArrival]) -> float:
    """Return for how many s a frame keeps a receive queue of the card busy: its own work, and the wait for the bus.

    The wait depends on the bus's load, which depends on the queues' throughput: one fixed point.
    """
    own, turn = nic.queue_ns * 1e-9, nic.pcie.turn_ns * 1e-9 if nic.pcie else 0.0
    if not nic.pcie:
        return own
    per_queue: defaultdict[tuple[int, int], float] = defaultdict(float)
    on_bus: defaultdict[tuple[int, int], float] = defaultdict(float)
    per_port: defaultdict[int, float] = defaultdict(float)
    for row in arrivals:
        per_port[row.port] += row.pps
    both = both_directions(per_port)
    for row in arrivals:
        per_queue[row.port, row.queue] += row.pps
        on_bus[row.port, row.queue] += row.pps * bus_seconds(nic, row.size, both)

    def seconds_at(load: float) -> float:
        return own + turn * load / (1 - load) if load < 1 else inf

    def load_of(seconds: float) -> float:
        return sum(
            used * (min(1.0, 1 / (per_queue[key] * seconds)) if per_queue[key] * seconds > 0 else 1.0)
            for key, used in on_bus.items()
        )

    high = min(load_of(seconds_at(0.0)), 1.0)
    fits = load_of(seconds_at(high)) < high
    return seconds_at(_fixed_point(lambda load: load_of(seconds_at(load)), high) if fits else high)
