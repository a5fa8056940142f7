"""The programs that the wire study compares with: ``trafgen`` of netsniff-ng and ``iperf3 -u``, between namespaces.

Each runs as a context that gives the process whose descendants send. It ends with its namespace, and gets the priority
that the embedded server's senders give themselves.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from lineproof.errors import TestbedError
from lineproof.system.network_namespace import configure, inside
from lineproof.testbed.namespaces import Cable, Topology
from lineproof_bench.wire.sender import NICE

from .figures import FRAME

LIMIT = 10.0
"""Seconds that a command may take, and that a sender may go on beyond its measurement."""

PORT = 5201
"""iperf3's usual TCP and UDP port."""

PAYLOAD = FRAME - 14 - 20 - 8
"""Bytes after the headers of Ethernet, IPv4 (RFC 791) and UDP (RFC 768)."""

_LISTEN = "0A"
"""TCP_LISTEN in /proc/net/tcp (proc_net_tcp.txt of the kernel)."""


def run(command: Sequence[str]) -> str:
    """What *command* printed. Raises TestbedError when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    if done.returncode != 0:
        raise TestbedError(f"'{' '.join(command)}' failed: {done.stderr.strip() or 'no reason given'}")
    return done.stdout


@contextlib.contextmanager
def _process(netns: str, command: Sequence[str], cpu: int | None, nice: int = 0, lasting: bool = True) -> Iterator[int]:
    """*command* in *netns*, on *cpu* only when one is given; ended on leaving.

    Raises TestbedError with its own words when it ended earlier, unless it need not be *lasting*.
    """
    place = (*inside(netns, bound=True), "nice", "-n", str(nice))
    pinned = ("taskset", "-c", str(cpu)) if cpu is not None else ()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            (*place, *pinned, *command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            yield process.pid
            if lasting and process.poll() is not None:
                errors.seek(0)
                words = errors.read(400).decode(errors="replace").strip() or "no reason given"
                raise TestbedError(f"'{' '.join(command)}' ended before it was measured: {words}")
        finally:
            for number in (signal.SIGINT, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(1.0)


class Trafgen:
    """``trafgen`` sending one *frame* from the cable's generator end, as fast as it can."""

    def __init__(self, topology: Topology, cable: Cable, program: str, frame: bytes, folder: Path) -> None:
        self._topology, self._cable, self._program = topology, cable, program
        self._config = folder / "trafgen.cfg"
        self._config.write_text(f"{{ {', '.join(f'0x{octet:02x}' for octet in frame)} }}\n")

    @contextlib.contextmanager
    def sending(self, cpu: int | None) -> Iterator[int]:
        """A sender on every CPU, or a single one on *cpu*. Itself it moves a single one to CPU 0."""
        # else it would raise socket memory limits of the whole machine; its short form -A is refused by 0.6.8
        fixed = ("--dev", self._cable.port, "--conf", str(self._config), "--no-sock-mem")
        command = (self._program, *fixed, *(() if cpu is None else ("--cpus", "1")))
        with _process(self._topology.generator, command, cpu, NICE) as pid:
            yield pid


class Iperf3:
    """One UDP stream of ``iperf3`` over the cable, which has addresses and fixed neighbours while it lasts."""

    def __init__(self, topology: Topology, cable: Cable, program: str) -> None:
        self._topology, self._cable, self._program = topology, cable, program

    @contextlib.contextmanager
    def sending(self, seconds: float, cpu: int | None, server_cpu: int | None) -> Iterator[int]:
        """The client for *seconds* and some more, on *cpu* only when one is given; its server on *server_cpu*."""
        cable = self._cable
        serve = (self._program, "--server", "--one-off", "--port", str(PORT), "--bind", cable.router_ipv4)
        to = (self._program, "--client", cable.router_ipv4, "--bind", cable.port_ipv4, "--port", str(PORT))
        how = ("--udp", "--bitrate", "0", "--length", str(PAYLOAD), "--time", str(int(seconds + LIMIT) + 1))
        # the server ends with its client
        with self._addresses(), _process(self._topology.router, serve, server_cpu, lasting=False) as server:
            _until_listening(server)
            with _process(self._topology.generator, (*to, *how), cpu, NICE) as client:
                yield client

    @contextlib.contextmanager
    def _addresses(self) -> Iterator[None]:
        """Addresses on both ends; neighbours are fixed, since the generator's end does no ARP."""
        cable = self._cable
        near, far = (self._topology.generator, cable.port), (self._topology.router, cable.router_interface)
        ends = (
            (*near, f"{cable.port_ipv4}/{cable.prefix_length}", cable.router_ipv4, cable.router_mac),
            (*far, cable.router_address, cable.port_ipv4, cable.port_mac),
        )
        try:
            for netns, interface, own, other, mac in ends:
                fixed = f"neighbour replace {other} lladdr {mac} nud permanent dev {interface}"
                configure(netns, f"address replace {own} dev {interface}", fixed)
            yield
        finally:
            for netns, interface, *_ in ends:
                configure(netns, f"address flush dev {interface}", f"neighbour flush dev {interface}")


def listens(text: str, port: int) -> bool:
    """Return whether ``/proc/PID/net/tcp`` shows a socket that listens on *port*."""
    rows = [line.split() for line in text.splitlines()[1:]]
    return any(row[1].endswith(f":{port:04X}") and row[3] == _LISTEN for row in rows if len(row) > 3)


def _until_listening(pid: int) -> None:
    until = time.monotonic() + LIMIT
    while True:
        with contextlib.suppress(OSError):
            # before it has entered its namespace it has this process's own: too early
            if Path(f"/proc/{pid}/ns/net").stat().st_ino != Path("/proc/self/ns/net").stat().st_ino and listens(
                Path(f"/proc/{pid}/net/tcp").read_text(encoding="ascii"), PORT
            ):
                return
        if time.monotonic() > until:
            raise TestbedError(f"iperf3's server does not listen on port {PORT} within {LIMIT:g} s")
        time.sleep(0.01)
