"""The host's own ``/etc/trex_cfg.yaml``, for a start that names no interfaces: its cards, CPUs and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from ...routers.base import Shell
from .start_findings import StartFinding, StartPlan

PATH = "/etc/trex_cfg.yaml"
LARGEST = 64 << 10
"""Characters that are looked at; more is no such file."""


def with_own_config(shell: Shell, plan: StartPlan) -> tuple[StartPlan, tuple[StartFinding, ...]]:
    """*plan* with what the file behind *shell* says, and what is wrong with the file. Raises TestbedError (SSH)."""
    answer = shell(f"cat {PATH}", 10.0)
    if answer.status:
        if "No such file" not in answer.stdout + answer.stderr:
            return plan, ()
        fix = "write one there (sudo ./dpdk_setup_ports.py -i asks for what it needs), or name 'interfaces' in 'start'"
        return plan, (StartFinding(f"{PATH} is not there, and 'start' names no interfaces; {fix}"),)
    try:
        return _read(answer.stdout, plan), ()
    except ValueError as error:
        return plan, (StartFinding(f"{PATH} is not understood: {error}; look at it on the host", stops=False),)


def _read(text: str, plan: StartPlan) -> StartPlan:
    """Raises ValueError for what is no configuration of TRex."""
    if len(text) > LARGEST:
        raise ValueError(f"it has more than {LARGEST} characters")
    try:
        # every value as text: 03:00.0 is a number for YAML 1.1
        data = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506  (it makes text, lists and mappings only)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error).partition("\n")[0] or "it is no YAML") from None
    server = data[0] if isinstance(data, list) and data else data
    names = server.get("interfaces") if isinstance(server, Mapping) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("it has no list 'interfaces'")
    limit = server.get("port_limit")
    count = int(limit) if isinstance(limit, str) and limit.isdecimal() else len(names)
    memory = server.get("limit_memory")
    return replace(
        plan,
        interfaces=tuple(name.strip() for name in names[:count]),
        threads=tuple(_threads(server.get("platform"))),
        memory=int(memory) if isinstance(memory, str) and memory.isdecimal() else None,
        prefix=str(server.get("prefix") or ""),
        low_end=str(server.get("low_end", "false")).lower() in ("true", "yes", "on", "1"),
    )


def _threads(platform: Any) -> Iterator[int]:
    if not isinstance(platform, Mapping):
        return
    pairs = platform.get("dual_if")
    named: list[Any] = [platform.get("master_thread_id"), platform.get("latency_thread_id")]
    for pair in pairs if isinstance(pairs, Sequence) else ():
        named += pair.get("threads") or [] if isinstance(pair, Mapping) else []
    yield from (int(each) for each in named if isinstance(each, str) and each.isdecimal())
