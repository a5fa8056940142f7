"""A switch: an SNMP agent on loopback with IF-MIB's 64-bit counters of frames, which a file says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.snmp_agent import SnmpAgent

TABLE = (1, 3, 6, 1, 2, 1, 31, 1, 1, 1)
COMMUNITY = SnmpAgent.COMMUNITY


class SnmpSwitch(SnmpAgent):
    """Ports 1 and 2. ``file`` holds ``{"1.in": …, "1.out": …}`` as JSON; missing ones are 0. UDP ``port``."""

    def __init__(self, file: Path) -> None:
        self._file = file
        super().__init__()

    def _count(self, key: str) -> int:
        return int(json.loads(self._file.read_text()).get(key, 0)) if self._file.exists() else 0

    def export(self, builder: Any) -> None:
        """The columns of ifXTable that count frames."""
        from pysnmp.proto.api import v2c

        Scalar, Instance = builder.import_symbols("SNMPv2-SMI", "MibScalar", "MibScalarInstance")
        count = self._count

        class Live(Instance):  # type: ignore[misc, valid-type]
            key = ""

            def getValue(self, name: Any, **context: Any) -> Any:
                return self.syntax.clone(count(self.key))

        symbols = []
        for column, side in ((7, "in"), (8, ""), (9, ""), (11, "out"), (12, ""), (13, "")):
            symbols.append(Scalar((*TABLE, column), v2c.Counter64()).setMaxAccess("read-only"))
            for number in (1, 2):
                instance = Live((*TABLE, column), (number,), v2c.Counter64(0))
                instance.key = f"{number}.{side}"
                symbols.append(instance)
        builder.export_symbols("SWITCH", *symbols)
