"""``python -m linerate study wire``: how fast, how exactly and how truthfully the netns bench sends.

Over one veth pair between two namespaces made for it, 64-byte frames (60 without FCS) are sent alternately by
``trafgen`` of netsniff-ng and by the embedded server's wire backend, flat out; then by the backend at half of trafgen's
rate; then both ways at once. Every count is the kernel's, read with ``ip -s link``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..embedded.backend import PortCounters, StreamTraffic
from ..embedded.wire import WireBackend, WirePort
from ..errors import BenchError
from ..generators.steal import Ticks
from ..testbed.leases import clear_stale, release, reserve
from ..testbed.namespaces import Topology, available, find, plan

SHARE = 0.8
"""The least part of trafgen's rate that the backend has to reach."""

ERROR = 0.01
"""The most that a rate asked for may be missed by."""

FLAT_OUT = 100e6
"""Frames/s that no machine reaches."""

SETTLE = 0.3
"""Seconds that a sender runs before it is measured."""

LIMIT = 10.0
"""Seconds that a command may take."""

_ETHERNET_UDP = "0800 4500002e0000000040110abe1000000130000001 04010009001a0000"
"""IPv4 (RFC 791) from 16.0.0.1 to 48.0.0.1 with its checksum, UDP from 1025 to 9."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables; 0 when all bounds are kept, 1 when one is not, 2 when this machine cannot run it."""
    parser = argparse.ArgumentParser(prog="linerate study wire", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="rounds, each sender once in each (default 3)")
    parser.add_argument("--seconds", type=float, default=2.0, help="seconds of each measurement (default 2)")
    arguments = parser.parse_args(argv)
    if not 1 <= arguments.rounds <= 100 or not 0.2 <= arguments.seconds <= 60:
        parser.error("right would be 1 to 100 rounds of 0.2 to 60 s")
    if reason := available():
        print(f"linerate: the wire study cannot run: {reason}")
        return 2
    trafgen = find("trafgen")
    if trafgen is None:
        print("linerate: the wire study cannot run: 'trafgen' is missing; install the package netsniff-ng")
        return 2
    with _testbed() as (topology, folder), contextlib.closing(_backend(topology)) as backend:
        return _Study(topology, backend, trafgen, folder, arguments.seconds, arguments.rounds).run()


@contextlib.contextmanager
def _testbed() -> Iterator[tuple[Topology, Path]]:
    """The namespaces, on a lease: a study that was killed is cleared up by the next start of any bench."""
    clear_stale()
    lease = reserve()
    topology = plan(lease.path.stem)
    lease = replace(lease, teardown=topology.teardown)
    lease.write()
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        for command in topology.setup:
            _run(command)
        yield topology, lease.folder
    finally:
        signal.signal(signal.SIGTERM, before)
        release(lease.path)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _backend(topology: Topology) -> WireBackend:
    """Both ends of the first cable as ports of one backend."""
    cable = topology.cables[0]
    return WireBackend(
        (
            WirePort(0, cable.port, topology.generator, cable.port_mac, cable.router_mac),
            WirePort(1, cable.router_interface, topology.router, cable.router_mac, cable.port_mac),
        )
    )


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    if done.returncode != 0:
        raise BenchError(f"'{' '.join(command)}' failed: {done.stderr.strip() or 'no reason given'}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class _Kernel:
    """One interface as ``ip -s link`` tells it."""

    rx: int
    tx: int

    @classmethod
    def read(cls, namespace: str, interface: str) -> _Kernel:
        text = _run(("ip", "-n", namespace, "-s", "-s", "-j", "link", "show", "dev", interface))
        stats = json.loads(text)[0]["stats64"]
        return cls(stats["rx"]["packets"], stats["tx"]["packets"])


class _Study:
    """The measurements over one cable."""

    def __init__(
        self, topology: Topology, backend: WireBackend, trafgen: str, folder: Path, seconds: float, rounds: int
    ) -> None:
        self._topology, self._cable, self._backend = topology, topology.cables[0], backend
        self._trafgen, self._seconds, self._rounds = trafgen, seconds, rounds
        self._config = folder / "trafgen.cfg"
        self._config.write_text(f"{{ {', '.join(f'0x{octet:02x}' for octet in self._frame(0))} }}\n")

    def run(self) -> int:
        """All of it, printed; the exit status."""
        before = Ticks.read()
        contenders: dict[str, Callable[[], float]] = {
            "trafgen, every CPU": lambda: self._run_trafgen(),
            "trafgen, one CPU": lambda: self._run_trafgen("--cpus", "1"),
            "wire backend": self._flat_out,
        }
        rates: dict[str, list[float]] = {name: [] for name in contenders}
        for turn in range(self._rounds):
            names = list(contenders)
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                rates[name].append(contenders[name]())
        print(f"64-byte frames per second over one veth pair, {self._rounds} rounds of {self._seconds:g} s, Mpps\n")
        print(f"  {'sender':<20}{'median':>8}{'least':>8}{'most':>8}")
        for name, found in rates.items():
            figures = (statistics.median(found), min(found), max(found))
            print(f"  {name:<20}" + "".join(f"{figure / 1e6:8.3f}" for figure in figures))
        rival = max(rates, key=lambda name: statistics.median(rates[name]) if name.startswith("trafgen") else 0.0)
        best = statistics.median(rates[rival])
        # round by round: what else the machine does comes and goes, and is alike for neighbours in time
        ratio = statistics.median(
            ours / theirs for ours, theirs in zip(rates["wire backend"], rates[rival], strict=True)
        )
        kept = [_line(f"ratio to '{rival}', median of the rounds: {ratio:.2f}", f"at least {SHARE:g}", ratio >= SHARE)]
        kept += self._holds(best / 2)
        kept += self._counts()
        steal = Ticks.read().steal_since(before)
        print(f"\nCPU time stolen by the hypervisor meanwhile: {steal:.1f} %")
        return 0 if all(kept) else 1

    def _frame(self, port: int) -> bytes:
        ends = (self._cable.router_mac, self._cable.port_mac)
        to, source = ends if port == 0 else ends[::-1]
        return bytes.fromhex((to + source).replace(":", "") + _ETHERNET_UDP).ljust(60, b"\0")

    def _kernel(self, port: int) -> _Kernel:
        if port == 0:
            return _Kernel.read(self._topology.generator, self._cable.port)
        return _Kernel.read(self._topology.router, self._cable.router_interface)

    def _rate(self) -> float:
        """Frames/s that leave port 0, from its counter after SETTLE s and *seconds* later."""
        time.sleep(SETTLE)
        # over netlink: starting 'ip' takes milliseconds, at a moment that nobody knows
        begin, first = time.monotonic(), self._backend.reading(0).tx_packets
        time.sleep(self._seconds)
        end, last = time.monotonic(), self._backend.reading(0).tx_packets
        return (last - first) / (end - begin)

    def _run_trafgen(self, *options: str) -> float:
        # bounded in time: it would send for ever if this process were killed
        bound = ("timeout", "-s", "KILL", str(SETTLE + self._seconds + LIMIT))
        command = (*bound, "ip", "netns", "exec", self._topology.generator, self._trafgen)
        # else it would raise socket memory limits of the whole machine; its short form -A is refused by 0.6.8
        fixed = ("--dev", self._cable.port, "--conf", str(self._config), "--no-sock-mem", *options)
        process = subprocess.Popen(
            (*command, *fixed), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            rate = self._rate()
            if process.poll() is not None or rate == 0:
                raise BenchError(f"trafgen sends nothing here; see what '{self._trafgen} --help' and it say")
            return rate
        finally:
            for number in (signal.SIGINT, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(1.0)

    def _streams(self, port: int, pps: float) -> tuple[StreamTraffic, ...]:
        return (StreamTraffic(1, self._frame(port), pps),)

    def _flat_out(self) -> float:
        self._backend.start({0: self._streams(0, FLAT_OUT)}, None)
        try:
            return self._rate()
        finally:
            self._backend.stop(0)

    def _holds(self, pps: float) -> list[bool]:
        """Half of trafgen's rate: over a window in the middle, and the frames of the whole trial."""
        duration, misses = self._seconds + SETTLE + 0.5, []
        wanted, sent = round(pps * duration), []
        for _ in range(self._rounds):
            before = self._kernel(0).tx
            self._backend.start({0: self._streams(0, pps)}, duration)
            misses.append(abs(self._rate() / pps - 1))
            self._wait(duration)
            sent.append(self._kernel(0).tx - before)
        print(f"\nasked for half of trafgen's rate, {pps / 1e6:.3f} Mpps, {wanted} frames in {duration:g} s\n")
        missed, short = statistics.median(misses), statistics.median(abs(frames / wanted - 1) for frames in sent)
        return [
            _line(f"rate missed by {100 * missed:.3f} % in mid-trial", f"at most {100 * ERROR:g} %", missed <= ERROR),
            _line(f"frames missed by {100 * short:.3f} %", f"at most {100 * ERROR:g} %", short <= ERROR),
        ]

    def _counts(self) -> list[bool]:
        """Both ways at once; the backend's counts beside the kernel's."""
        duration, pps = 1.0, 50_000.0
        claimed, kernel = self._readings()
        self._backend.start({port: self._streams(port, pps) for port in (0, 1)}, duration)
        self._wait(duration)
        claimed_after, kernel_after = self._readings()
        print("\ncounts of a second both ways at 50 000 frames/s each\n")
        kept = []
        for port in (0, 1):
            pairs = {
                "tx": (
                    claimed_after[port].opackets - claimed[port].opackets,
                    kernel_after[port].tx - kernel[port].tx,
                ),
                "rx": (
                    claimed_after[port].ipackets - claimed[port].ipackets,
                    kernel_after[port].rx - kernel[port].rx,
                ),
            }
            for name, (ours, theirs) in pairs.items():
                good = ours == theirs and ours > 0
                kept.append(_line(f"port {port} {name}: backend {ours}, kernel {theirs}", "equal", good))
        return kept

    def _readings(self) -> tuple[list[PortCounters], list[_Kernel]]:
        return [self._backend.counters(port) for port in (0, 1)], [self._kernel(port) for port in (0, 1)]

    def _wait(self, duration: float) -> None:
        until = time.monotonic() + duration + LIMIT
        while any(self._backend.sending(port) for port in (0, 1)):
            if time.monotonic() > until:
                raise BenchError(f"the backend still sends {LIMIT:g} s after the end of its trial")
            time.sleep(0.005)


def _line(text: str, bound: str, good: bool) -> bool:
    print(f"  {'ok ' if good else 'BAD'} {text} ({bound})")
    return good
