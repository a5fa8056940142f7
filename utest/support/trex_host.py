"""A Linux machine on which TRex is badly placed, behind an SSH server: what its files and tools show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from lineproof_bench.shells.machine import Builtin, CommandOutput, Machine, Memory, common_commands
from support.hostile_ssh import Guard, HostileServer, OpenHouse

CARDS = (
    ("0000:01:00.0", "igb", "8086:1521", 8, 0, "eno1"),
    ("0000:03:00.0", "i40e", "8086:1572", 4, 0, "enp3s0f0"),
    ("0000:81:00.0", "i40e", "8086:1572", 4, 1, "enp3s0f1"),
)
"""Address, driver, identifiers, lanes of 8, node, interface."""
FILES = {
    "/etc/os-release": 'PRETTY_NAME="Ubuntu 24.04 (SIMULATED)"\nID=simulated\n',
    **{
        f"/sys/devices/pci0000:00/{address}/{name}": text
        for address, driver, identifiers, lanes, node, interface in CARDS
        for name, text in {
            "uevent": f"DRIVER={driver}\nPCI_CLASS=20000\nPCI_ID={identifiers}\n",
            "numa_node": f"{node}\n",
            "current_link_width": f"{lanes}\n",
            "max_link_width": "8\n",
            "current_link_speed": "8.0 GT/s PCIe\n",
            "max_link_speed": "8.0 GT/s PCIe\n",
            f"net/{interface}/uevent": f"INTERFACE={interface}\n",
        }.items()
    },
}
X710 = "Ethernet controller: Intel Corporation Ethernet Controller X710 for 10GbE SFP+ (rev 02)"


def machine() -> Machine:
    def said(text: str) -> Builtin:
        return lambda arguments, line: CommandOutput(text)

    files = {path: (lambda line, text=text: text) for path, text in FILES.items()}
    tools = {
        "ethtool": said("driver: i40e\nfirmware-version: 4.26 0x8000143f 0.0.0\n"),
        "lscpu": said("CPU(s): 24\nModel name:   a processor\nNUMA node(s): 2\n"),
        "lspci": said("".join(f"{address} {X710}\n" for address, *_ in CARDS)),
        "uname": said("6.8.0-simulated\n"),
    }
    no_router: Any = None
    return Machine({**common_commands(files), **tools}, no_router, Memory())


@contextmanager
def trex_host_server(folder: Path, guard: type[Guard] = OpenHouse) -> Iterator[str]:
    """The machine at 127.0.0.1, until the context ends: its login as YAML of a testbed file."""
    host = machine()

    async def answer(process: Any) -> None:
        output = host.run(process.command)
        process.stdout.write(output.stdout.encode())
        process.stderr.write(output.stderr.encode())
        process.exit(output.status)

    with closing(HostileServer(folder, guard, process_factory=answer)) as server:
        yield f"{{user: trex, port: {server.port}, key: {server.key}, known_hosts: {server.known}}}"
