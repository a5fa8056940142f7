"""A made-up router that only a file describes: its configuration, its answers, and descriptions of it."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any

import yaml

from lineproof.config import read_yaml, validate_config
from lineproof.routers.description import RouterDescription
from lineproof.system.ssh_shell import Result
from support.paths import DATA, LIBRARIES

JSON = """\
shell: mybox
refused: ['^error:']
refusals: ['error: no']
commands:
  uptime:
    run: show uptime json
    json_paths: {milliseconds: 'system.up[0]'}
    example: 'banner {"system": {"up": [90500, 3]}}'
    expected: {uptime: 90.5}
  counters:
    run: show counters json
    json_paths:
      rx_packets: 'ports[name={interface}].in.packets'
      tx_packets: 'ports[name={interface}].out.packets'
      passing_no_route: 'ports[name={interface}].no_route'
    absent_is_zero: [passing_no_route]
    example: |
      {"ports": [{"name": "eth1", "in": {"packets": 7}, "out": {"packets": "5"}, "no_route": 2}]}
    expected: {interface: eth1, rx_packets: 7, tx_packets: 5, passing_no_route: 2}
"""
"""A description whose answers are JSON."""

BASE = r"""
terminal: {prompt: 'Router(\(\w+\))?#', prompts: ['Router# '], first: [terminal length 0]}
refused: ['^%']
refusals: ['% entry not found', '% nothing to commit']
"""
ROUTE = "ip route {network_ip} {network_mask} {peer} name lineproof"
ARP = "arp {peer} {peer_mac_dotted} arpa"
DESCRIPTIONS = {
    "saving": f"""\
shell: saving{BASE}
save: ['copy running-config flash:before']
restore: ['configure replace flash:before force']
changes:
  - do: [configure terminal, '{ROUTE}', '{ARP}', exit]
""",
    "in reverse": f"""\
shell: in reverse{BASE}
changes:
  - do: [configure terminal, '{ROUTE}', '{ARP}', exit]
    undo: [configure terminal, 'no {ARP}', 'no {ROUTE}', exit]
""",
    "committing": f"""\
shell: committing{BASE}
gone: [nothing to commit]
changes:
  - do: [configure terminal, '{ROUTE}', '{ARP}', commit, exit]
    undo: [configure terminal, 'no {ARP}', 'no {ROUTE}', commit, exit]
""",
    "looking": f"""\
shell: looking{BASE}
changes:
  - do: [configure terminal, '{ROUTE}', exit]
    undo: [configure terminal, 'no {ROUTE}', exit]
  - do: ['do {ARP}']
    undo: ['no arp {{peer}}']
    look:
      run: show arp {{peer}}
      pattern: '^arp \\S+ (?P<value>\\S+) '
      ours: '{{peer_mac_dotted}}'
      example: |
        arp 192.0.2.9 0200.0000.0077 arpa
      expected: {{value: 0200.0000.0077}}
""",
    "looking before": f"""\
shell: looking before{BASE}
save: ['copy running-config flash:before']
restore: ['configure replace flash:before force']
look:
  run: show archive
  pattern: '^changed by (?P<value>[^\\n]+)$'
  none: saved by lineproof
  example: |
    saved by lineproof
    changed by bob on Monday
  expected: {{value: bob on Monday}}
changes:
  - do: [configure terminal, '{ROUTE}', '{ARP}', exit]
""",
}


def description(name: str) -> RouterDescription:
    return validate_config(yaml.safe_load(DESCRIPTIONS[name]), RouterDescription, Path(f"{name}.yaml"), {})


def with_examples(kind: str, which: int = 0) -> RouterDescription:
    """Return one that comes with Lineproof, with its examples: of several the n-th."""
    return RouterDescription.model_validate(data_with_examples(kind, which))


def data_with_examples(kind: str, which: int = 0) -> dict[str, Any]:
    """Return its data, with the examples of ``utest/data/router_examples``."""
    data: dict[str, Any]
    data = {"shell": kind, **read_yaml(LIBRARIES / "lineproof" / "routers" / kind / f"{kind}.yaml")[0]}
    own = DATA / "router_examples" / f"{kind}.yaml"
    examples = read_yaml(own)[0] if own.exists() else {}
    for place, listed in examples.items():
        query: Any = data
        for key in filter(None, place.split(".")):
            at = int(key) if isinstance(query, list) else key
            base = query["like"] if isinstance(query, dict) and key not in query else query
            # what is like it has no part in its examples
            query[at] = copy(base[at])
            query = query[at]
        example = listed[which % len(listed)] if isinstance(listed, list) else listed
        recorded = {"example": (DATA / example["file"]).read_text(encoding="utf-8")} if "file" in example else {}
        query |= {key: value for key, value in {**example, **recorded}.items() if key != "file"}
    return data


class CommandLine:
    """A :data:`~lineproof.system.ssh_shell.Shell` on it: what it is given takes effect at once, and stays."""

    def __init__(self) -> None:
        self._lines = ["ip route 16.0.0.0 255.0.0.0 192.0.2.9", "arp 192.0.2.9 0200.0000.0077 arpa"]
        self.saved: list[str] | None = None
        self.archive = "saved by lineproof\n"

    @property
    def configuration(self) -> str:
        """Return what is compared before and after."""
        return "\n".join(self._lines)

    def change(self, old: str, new: str) -> None:
        self._lines = [line.replace(old, new) for line in self._lines]
        self.archive += "changed by bob on Monday\n"

    def answer(self, line: str) -> str:
        command = line.removeprefix("do ")
        if command in ("configure terminal", "exit", "terminal length 0"):
            return ""
        if command == "copy running-config flash:before":
            self.saved = list(self._lines)
        elif command == "configure replace flash:before force":
            if self.saved is None:
                return "% no such item\n"
            self._lines = list(self.saved)
        elif command == "show archive":
            return self.archive
        elif command.startswith("show arp "):
            return "".join(f"{line}\n" for line in self._lines if line.startswith(f"{command.removeprefix('show ')} "))
        elif command.startswith("no arp ") and len(command.split()) == 3:
            start = f"{command.removeprefix('no ')} "
            if not any(line.startswith(start) for line in self._lines):
                return "% entry not found\n"
            self._lines = [line for line in self._lines if not line.startswith(start)]
        elif command.startswith("no ") and command.removeprefix("no ") in self._lines:
            self._lines.remove(command.removeprefix("no "))
        elif command.startswith("no "):
            return "% entry not found\n"
        elif command in self._lines:
            return "% it exists already\n"
        elif command.startswith(("ip route ", "arp ")):
            self._lines.append(command)
        else:
            return "% Invalid input\n"
        return ""

    def __call__(self, command: str, limit: float) -> Result:
        return Result(self.answer(command), "", 0, 0.0)

    def close(self) -> None:
        """End the login."""


class CommittingLine(CommandLine):
    """One on which nothing takes effect before ``commit``, and what is not committed ends with the login."""

    def __init__(self) -> None:
        super().__init__()
        self._running = list(self._lines)
        self._open = False

    @property
    def configuration(self) -> str:
        """Return what runs."""
        return "\n".join(self._running)

    def answer(self, line: str) -> str:
        if line == "configure terminal" and not self._open:
            self._open, self._lines = True, list(self._running)
            return ""
        if not self._open or line == "configure terminal":
            return "% Invalid input\n"
        if line == "exit":
            self._open = False
            return ""
        if line == "commit":
            if self._lines == self._running:
                return "% nothing to commit\n"
            self._running = list(self._lines)
            return ""
        return super().answer(line).replace("entry not found", "The specified entry does not exist.")

    def close(self) -> None:
        self._open = False


def machine_of(name: str) -> CommandLine:
    return CommittingLine() if name == "committing" else CommandLine()
