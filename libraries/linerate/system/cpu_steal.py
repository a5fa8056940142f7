"""CPU time that a virtual machine's host took away while a testbed on it measured. Linux; elsewhere none is seen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Ticks:
    """Clock ticks of all CPUs together since boot, from the first line of ``/proc/stat`` (proc(5))."""

    stolen: int = 0
    total: int = 0

    @classmethod
    def read(cls, path: Path = Path("/proc/stat")) -> Ticks:
        """The counts now; zeros where the system has no such file."""
        try:
            words = path.read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
            # user nice system idle iowait irq softirq steal; guest time is contained in user's
            counts = [int(word) for word in words[:8]]
        except (OSError, ValueError):
            return cls()
        return cls(counts[7] if len(counts) == 8 else 0, sum(counts))

    def steal_since(self, before: Ticks) -> float:
        """Per cent of the CPU time since *before* that was stolen, 0..100."""
        total = self.total - before.total
        return 100 * max(0, self.stolen - before.stolen) / total if total > 0 else 0.0
