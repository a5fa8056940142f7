"""TRex's platform configuration (``trex_cfg.yaml``, version 2) for a server on Linux interfaces of this machine.

The keys are those of TRex's manual, "Platform YAML configuration", and of its reader, ``src/platform_cfg.cpp`` (v3.08).
"""

from __future__ import annotations

from dataclasses import dataclass

import yaml

RPC_PORT, PUB_PORT = 4501, 4500
"""TCP ports of TRex's API, in a network namespace of its own."""

RING_ARGUMENTS = "blocksz=593920,framesz=9280,framecnt=4096,qdisc_bypass=1"
"""Arguments of DPDK's af_packet driver: TRex's own block and frame size (jumbo frames fit), 16 times its 256 frames.

With 256 TRex v3.08 on a veth pair of a shared machine with two CPUs missed 0.1 % of 50 000 frames/s and 3 % of 400 000;
with 4096 (38 MB for each port and direction) none.
"""


@dataclass(frozen=True, slots=True)
class PortInfo:
    """A port: the Linux ``interface``, its MAC address, and the one that it sends to, which needs no ARP."""

    interface: str
    src_mac: str
    dest_mac: str


def config_text(ports: tuple[PortInfo, ...], core: int, prefix: str, port_speed: int) -> str:
    """Return the file's text. *core*: the one CPU that the server uses; *port_speed*: Mbit/s that every port reports.

    *prefix* tells two servers on one machine apart.
    """
    data = {
        "version": 2,
        "port_limit": len(ports),
        "interfaces": [
            f"--vdev=net_af_packet{index},iface={port.interface},{RING_ARGUMENTS}" for index, port in enumerate(ports)
        ],
        "zmq_rpc_port": RPC_PORT,
        "zmq_pub_port": PUB_PORT,
        # before 'low_end_core', whose meaning it changes
        "low_end": True,
        "low_end_core": core,
        "prefix": prefix,
        "port_speed": port_speed,
        "port_info": [{"src_mac": port.src_mac, "dest_mac": port.dest_mac} for port in ports],
    }
    return yaml.safe_dump([data], sort_keys=False)
