"""Processors and places of queues as a simulated Linux machine shows them, as the model knows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lineproof.simulation.habits import BY_A_MODEL

from ..state import RouterState, ThreadState
from .machine import Builtin, CommandLine, CommandOutput

DRIVER = "simulated"
FIRST_IRQ, MOST_IRQS = 24, 256
FRAMES_PER_INTERRUPT = 64
TICKS = 100
"""Ticks of ``/proc/stat``, per second."""


def queues_of(state: RouterState) -> list[tuple[str, int, ThreadState]]:
    """Interface, queue and thread of each receive queue, in the order of their interrupts."""
    found = [(name, queue, thread) for thread in state.threads for name, queue in thread.queues]
    return sorted(found, key=lambda row: row[:2])


def files() -> dict[str, Callable[[CommandLine], str]]:
    """Files of a kernel that forwards."""
    affinity = {f"/proc/irq/{FIRST_IRQ + at}/effective_affinity_list": _affinity_of(at) for at in range(MOST_IRQS)}
    return {
        "/proc/interrupts": lambda line: interrupts(line.state),
        "/proc/stat": lambda line: stat(line.state),
        "/proc/net/route": lambda line: "Iface\tDestination\n" + "route\n" * len(line.state.configuration.routes),
        **affinity,
    }


def card_file(path: str, state: RouterState) -> str | None:
    """``speed`` and ``device/uevent`` of an interface under ``/sys/class/net``; None: another file."""
    for one in state.interfaces:
        if path == f"/sys/class/net/{one.name}/speed" and one.link_up:
            return f"{one.speed_bps / 1e6:.0f}\n"
        if path == f"/sys/class/net/{one.name}/device/uevent":
            return f"DRIVER={DRIVER}\n"
    return None


def commands(own: bool) -> dict[str, Builtin]:
    """``lscpu``; of a kernel that forwards (*own*) also ``ethtool``."""

    def lscpu(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
        count = f"CPU(s):                {len(line.state.threads)}\n" if own else ""
        return CommandOutput(f"Architecture:          x86_64\n{count}Model name:            {BY_A_MODEL}\n")

    return {"lscpu": lscpu, **({"ethtool": ethtool} if own else {})}


def ethtool(arguments: Sequence[str], line: CommandLine) -> CommandOutput:
    """``ethtool -i``, ``-k``, ``-K`` with ``lro``, ``-l`` and ``-S``."""
    option, name, *words = (*arguments, "", "")
    if name not in {one.name for one in line.state.interfaces}:
        return CommandOutput("", f"netlink error: no device matches name {name}\n", 1)
    own = [(queue, thread) for interface, queue, thread in queues_of(line.state) if interface == name]
    if option == "-i":
        return CommandOutput(f"driver: {DRIVER}\nversion: {line.state.version}\nfirmware-version: \nbus-info: \n")
    if option == "-k":
        lro = "on" if name in line.memory.lro else "off"
        return CommandOutput(f"Features for {name}:\nlarge-receive-offload: {lro}\n")
    if option == "-K" and words[:2] in (["lro", "on"], ["lro", "off"]):
        (line.memory.lro.add if words[1] == "on" else line.memory.lro.discard)(name)
        return CommandOutput("")
    if option == "-l":
        return CommandOutput(f"Channel parameters for {name}:\nCurrent hardware settings:\nCombined:\t{len(own)}\n")
    if option == "-S":
        # the model counts by thread: a queue's own count is known only where its thread has no other
        alone = [(queue, thread) for queue, thread in own if len(thread.queues) == 1]
        rows = "".join(f"     rx_queue_{queue}_packets: {thread.packets}\n" for queue, thread in alone)
        state = next(one for one in line.state.interfaces if one.name == name)
        rows += f"     rx_crc_errors: {state.rx_damaged}\n"
        rows += f"     rx_flow_control_xoff: {state.pauses_received}\n     tx_flow_control_xoff: {state.pauses_sent}\n"
        return CommandOutput(f"NIC statistics:\n{rows}")
    return CommandOutput("", "netlink error: Operation not supported\n", 95)


def interrupts(state: RouterState) -> str:
    """``/proc/interrupts``."""
    cpus = [thread.lcore for thread in state.threads]
    text = "     " + "".join(f"{f'CPU{cpu}':>12}" for cpu in cpus) + "\n"
    for at, (name, queue, thread) in enumerate(queues_of(state)):
        count = thread.packets // (FRAMES_PER_INTERRUPT * len(thread.queues))
        counts = "".join(f"{count if cpu == thread.lcore else 0:12d}" for cpu in cpus)
        text += f"{FIRST_IRQ + at:4d}:{counts}  SIMULATED {at}-edge      {name}-TxRx-{queue}\n"
    return text


def stat(state: RouterState) -> str:
    """``/proc/stat``: time in software interrupts is time spent on packets."""
    rows = [("cpu", 0, 0)]
    for thread in state.threads:
        rows.append((f"cpu{thread.lcore}", *thread.ticks(TICKS)))
    rows[0] = ("cpu", sum(row[1] for row in rows), sum(row[2] for row in rows))
    return "".join(f"{name} 0 0 0 {idle} 0 0 {softirq} 0 0 0\n" for name, softirq, idle in rows)


def _affinity_of(at: int) -> Callable[[CommandLine], str]:
    def affinity(line: CommandLine) -> str:
        queues = queues_of(line.state)
        return f"{queues[at][2].lcore}\n" if at < len(queues) else ""

    return affinity
