"""Everything that routers read out of recorded outputs, as rows of JSON. ``recorded/sets.yaml`` lists the outputs."""

from __future__ import annotations

import dataclasses
import enum
import json
import re
from collections import UserDict, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from lineproof.config import validate_config
from lineproof.core.telemetry import Side
from lineproof.errors import TestbedError
from lineproof.routers import make_router
from lineproof.routers.description import RouterDescription
from lineproof.stacks import sampled_stacks
from lineproof.system.command_line import ShellCommands
from lineproof.system.ssh_shell import Result, Shell
from routers.test_frames import FRAMES, Kernel, not_set_up
from support.described_router import JSON, with_examples
from support.fake_router import SIDES, shell_of, simulated
from support.paths import DATA
from support.scripted_shells import answering

RECORDED = Path(__file__).parent / "recorded"
METHODS = (
    "identify",
    "facts",
    "read",
    "neighbours",
    "work",
    "under_load",
    "sample_stacks",
    "links",
    "configure",
)
HIDDEN = {"raw", "unread", "differences", "load_pps", "offered_pps", "forwarded_pps"}
"""Fields with outputs as they came, sentences about commands (part ``messages``), rates that no router knows."""
Answers = dict[str, list[tuple[str, int]]]
"""Command -> outputs, each with its exit status, in turn; the last is repeated."""


class Recording(UserDict[str, Any]):
    """Answers of a router: each look-up takes the next one. ``sysctl`` shows several names by those of each."""

    def __getitem__(self, command: str) -> tuple[str, int]:
        outputs: list[tuple[str, int]] = self.data[command]
        return outputs.pop(0) if len(outputs) > 1 else outputs[0]

    def get(self, command: str, default: Any = None) -> Any:
        if command in self:
            return self[command]
        program, *names = command.split()
        known = [f"sysctl {name}" for name in names if program == "sysctl" and f"sysctl {name}" in self]
        return ("".join(self[name][0] for name in known), 0) if known else default

    def shell(self) -> Shell:
        """Return a shell that knows pipes by how they begin, and other commands as they are."""
        single = answering(self)

        def shell(command: str, limit: float) -> Result:
            pipes = [name for name in self if name.endswith(" |") and name[:-2] in command]
            return Result(self[pipes[0]][0], "", 0, 0.0) if pipes else single(command, limit)

        return shell


def texts() -> Mapping[str, str]:
    """Return the rows of each recording set by file name."""
    files: dict[str, str] = {}
    for name, source in yaml.safe_load((RECORDED / "sets.yaml").read_text(encoding="utf-8")).items():
        names, methods = source.get("interfaces", []), source.get("only", METHODS)
        sides = [Side(*side) for side in source.get("sides", ())] or _sides(names)
        files[name] = rows(source["shell"], partial(_recorded_shell, source), names, sides, methods=methods)
    for kind in ("vpp", "linux", "freebsd"):
        # a simulated router's uptime follows this machine's clock
        new = partial(lambda name: shell_of(simulated(name)[0]), kind)
        read = rows(kind, new, ["eth1", "eth2"], SIDES)
        read += rows(kind, partial(not_set_up, kind), ["eth1", "eth2"], SIDES, methods=["frames"])
        files[f"simulated-{kind}"] = re.sub(r'(?m)^{"read.uptime".*\n', "", read)
    modules = partial(answering, Kernel("ipv6", "8021q", "mpls"))
    files["linux-every-module"] = rows("linux", modules, ["eth1", "eth2"], SIDES, methods=["frames"])
    for name in ("ios", "junos", "routeros"):
        files[f"described-{name}"] = described(with_examples(name))
    files["described-mybox"] = described(
        validate_config(yaml.safe_load(JSON), RouterDescription, Path("mybox.yaml"), {})
    )
    return {f"{name}.jsonl": text for name, text in files.items()}


def _recorded_shell(source: Mapping[str, Any]) -> Shell:
    """Return a shell with the answers of one entry of ``sets.yaml``."""
    answers: Answers = {}
    for command, outputs in source.get("answers", {}).items():
        listed = outputs if isinstance(outputs, list) else [outputs]
        answers[command] = [(_text(words) if words.endswith(".txt") else f"{words}\n", 0) for words in listed]
    for name in source.get("from", ()):
        answers = {**(_transcript(_text(name)) if name.endswith(".txt") else _folder(name)), **answers}
    return Recording(answers).shell()


def _text(name: str) -> str:
    path = RECORDED / name if (RECORDED / name).exists() else DATA / name
    return path.read_bytes().decode()


def _folder(name: str) -> Answers:
    """Return VPP's answers by file name, in which a prefix may be the end: ``show_ip_fib_48.0.0.0_8.txt``."""
    files = {path.stem: path for root in (DATA, RECORDED) for path in (root / name).glob("show_*.txt")}
    commands = {stem: re.sub(r"(\d) (\d+)$", r"\1/\2", stem.replace("_", " ")) for stem in files}
    return {f"vppctl {commands[stem]}": [(path.read_bytes().decode(), 0)] for stem, path in files.items()}


def _transcript(text: str) -> Answers:
    answers: Answers = defaultdict(list)
    for part in text.removeprefix("$ ").split("\n$ "):
        head, _, output = part.partition("\n")
        ((status, command),) = re.findall(r"\A(?:\[(\d+)\] )?(.*)", head)
        answers[command].append((f"{output}\n" if output else "", int(status or 0)))
    return answers


def _sides(interfaces: Sequence[str]) -> list[Side]:
    return [dataclasses.replace(side, interface=name) for name, side in zip(interfaces, SIDES, strict=False)]


def described(file: RouterDescription) -> str:
    """Return what a router reads of which a file has the commands, with an example of each one's output."""
    queries = [query for _, query in file.commands if query]
    name = next((str(query.expected["interface"]) for query in queries if "interface" in query.expected), "eth0")
    outputs: dict[str, str] = defaultdict(str)
    for query in queries:
        # of one command, each query may have an example of its own part of the output
        command = query.run.replace("{interface}", name)
        outputs[command] = f"{query.example.rstrip()}\n{outputs[command]}" if query.example else outputs[command]
    recording = Recording({command: [(text, 0)] for command, text in outputs.items()})
    # the seconds between two readings are this machine's
    return re.sub(
        r'(?m)^{"under_load.seconds".*\n', "", rows(file.shell, recording.shell, [name], _sides([name]), file)
    )


def rows(
    kind: Any,
    new_shell: Callable[[], Shell],
    interfaces: Sequence[str],
    sides: Sequence[Side],
    file: RouterDescription | None = None,
    methods: Sequence[str] = METHODS,
) -> str:
    """Return what each method of a router gives, as lines of JSON. Each method has a shell of its own."""
    lines: list[str] = []
    for method in methods:
        try:
            reading = _reading(method, kind, new_shell(), tuple(interfaces), tuple(sides), file)
        except TestbedError as error:
            reading = f"refused: {type(error).__name__}"
        depth = 2 if dataclasses.is_dataclass(reading) else 1
        lines += [json.dumps(row, ensure_ascii=False, sort_keys=True) for row in _flat(method, data(reading), depth)]
    return "".join(f"{line}\n" for line in lines)


def _reading(
    method: str,
    kind: Any,
    shell: Shell,
    names: tuple[str, ...],
    sides: tuple[Side, ...],
    file: RouterDescription | None,
) -> Any:
    router = make_router(kind, shell, names, file=file)
    if method == "links":
        return {state.interface: state for state in router.link_states()}
    if method == "configure":
        with router.rehearsal() as changes:
            router.configure(sides)
        return [[" ".join(change.do), " ".join(change.undo)] for change in changes.pending]
    if method == "frames":
        with router.rehearsal() as changes:
            router.configure_frames(sides, FRAMES)
            notes = router.notes
        made = [[" ".join(change.do), " ".join(change.undo)] for change in changes.pending]
        return [*made, *({"note": note} for note in notes)]
    if method == "sample_stacks":
        return "" if file else sampled_stacks(ShellCommands(shell), 2.0)
    if method == "read" and router.has_runtime:
        runtime = router.read_runtime()
        return dataclasses.replace(router.read(), runtime=runtime.runtime, since_clear=runtime.since_clear)
    arguments: Mapping[str, Any] = {"neighbours": [sides], "under_load": [lambda: None]}
    return getattr(router, method)(*arguments.get(method, []))


def data(value: Any) -> Any:
    """Return *value* as JSON data without what is not known; figures with 12 digits, whatever the order of sums."""
    return json.loads(json.dumps(value, default=_plain), parse_float=lambda digits: float(f"{float(digits):.12g}"))


def _plain(part: Any) -> Any:
    if not dataclasses.is_dataclass(part):
        return part.name if isinstance(part, enum.Enum) else dict(part)
    fields = ((field.name, getattr(part, field.name)) for field in dataclasses.fields(part))
    return {name: own for name, own in fields if own is not None and name not in HIDDEN}


def _flat(place: str, value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """Return a row for each field of a reading, and for each entry of a field that is a list or a mapping."""
    if depth and isinstance(value, dict):
        for key, part in value.items():
            yield from _flat(f"{place}.{key}", part, depth - 1)
    else:
        entries = value if depth and isinstance(value, list) else [value]
        yield from ({place: part} for part in entries if part not in ("", [], {}))
