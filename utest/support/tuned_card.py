"""A shell over the settings of one card: queues, rings, offloads, and a kernel variable."""

from __future__ import annotations

import shlex

from lineproof.routers.base import Result


class Card:
    """A shell over one card's settings. *deaf*: it takes settings and keeps its own."""

    def __init__(self, deaf: bool = False) -> None:
        self.numbers = {"combined": 4, "rx": 512, "tx": 512}
        self.offloads = {"lro": "on", "gro": "on", "gso": "on", "tso": "on"}
        self.flags = ["LRO", "RXCSUM", "TSO4"]
        self.variable = "30 60"
        self.ran: list[str] = []
        self.deaf = deaf

    def __call__(self, command: str, limit: float) -> Result:
        self.ran.append(command)
        words = [word for word in shlex.split(command) if word not in ("sudo", "-n")]
        return Result(getattr(self, words[0])(words[1:], "-n " in command.removeprefix("sudo -n ")), "", 0, 0.0)

    def ethtool(self, words: list[str], _: bool) -> str:
        option, _name, *pairs = words
        if pairs and not self.deaf:
            for key, value in zip(pairs[::2], pairs[1::2], strict=True):
                if option == "-K":
                    self.offloads["tso" if key.startswith("tx-tcp") else key] = value
                else:
                    self.numbers[key] = int(value)
        if option == "-l":
            return f"Current hardware settings:\nRX:\t\tn/a\nCombined:\t{self.numbers['combined']}\n"
        if option == "-g":
            return f"Current hardware settings:\nRX:\t\t{self.numbers['rx']}\nTX:\t\t{self.numbers['tx']}\n"
        names = {"lro": "large-receive", "gro": "generic-receive", "gso": "generic-segmentation"}
        text = "".join(f"{long}-offload: {self.offloads[short]}\n" for short, long in names.items())
        tso = self.offloads["tso"]
        return f"{text}tcp-segmentation-offload: {tso}\n\ttx-tcp-segmentation: {tso}\n\ttx-tcp-ecn: off [fixed]\n"

    def ifconfig(self, words: list[str], _: bool) -> str:
        if not self.deaf:
            for word in words[1:]:
                parts = {"tso": ["TSO4", "TSO6"]}.get(word.lstrip("-"), [word.lstrip("-").upper()])
                self.flags = [flag for flag in self.flags if flag not in parts]
                self.flags = sorted([*self.flags, *([] if word.startswith("-") else parts)])
        return f"ix0: flags=8843<UP>\n\toptions=e4<{','.join(self.flags)}>\n"

    def sysctl(self, words: list[str], only_value: bool) -> str:
        if "=" in words[-1] and not self.deaf:
            self.variable = words[-1].partition("=")[2]
        return self.variable + "\n"
