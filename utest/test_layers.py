"""The house as docs/architecture.md says it, and what no file of it does. Files are read here, imported elsewhere."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from lineproof.system import children
from support.paths import LIBRARIES, ROOT

PRODUCT, BENCH = "lineproof", "lineproof_bench"


def module(path: Path) -> str:
    parts = path.relative_to(LIBRARIES).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module(path): path for path in sorted(LIBRARIES.rglob("*.py"))}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree_of(path)))


@cache
def imports(name: str) -> frozenset[str]:
    """Every module that *name* imports, within functions and for types alone too."""
    path, found = FILES[name], set()
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                found.add(whole if (whole := f"{base}.{alias.name}") in FILES else base)
    return frozenset(found)


def floors(package: str) -> dict[str, int]:
    """Room -> floor, from the table of *package* in the document: ``| 3 | `sla` | …``."""
    document = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = document.split(f"\n## `{package}`")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| ((?:`\w+`(?:, )?)+) \|", table, re.MULTILINE)
    return {room: int(floor) for floor, names in rows for room in re.findall(r"`(\w+)`", names)}


def room(name: str) -> str:
    """The room, or the module of the ground floor, that *name* is in; the package itself is its own."""
    return name.split(".")[1] if "." in name else name


def arrows(package: str) -> Iterator[tuple[str, str]]:
    """Importing and imported module, of two rooms of *package*. Entrances (``__main__``) may import anything."""
    for name in FILES:
        if not name.startswith(f"{package}.") or room(name) == "__main__":
            continue
        for other in imports(name):
            if other.startswith(f"{package}.") and room(other) != room(name):
                yield name, other


@pytest.mark.parametrize("package", [PRODUCT, BENCH])
def test_every_room_has_a_floor_and_imports_go_down(package: str) -> None:
    floor = floors(package)
    assert len(set(floor.values())) <= 8
    assert set(floor) == {room(name) for name in FILES if name.startswith(f"{package}.")} - {"__main__"}
    # modules of the ground floor may know each other; no cycle among them is a test of its own
    wrong = [
        f"{name} ({floor[room(name)]}) imports {other} ({floor[room(other)]})"
        for name, other in arrows(package)
        if floor[room(other)] >= floor[room(name)] and floor[room(name)] > 0
    ]
    wrong += [
        f"{name} imports {other}" for name, other in arrows(package) if floor[room(other)] > floor[room(name)] == 0
    ]
    assert wrong == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {name: [other for other in imports(name) if other in FILES] for name in FILES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(error.args[1]))


OF_FEW = {
    # the child process that is the simulated testbed runs it
    BENCH: {BENCH},
    "robot": {"lineproof.robot", "lineproof.evidence.allure"},
    "allure_robotframework": {"lineproof.evidence.allure"},
    "allure_commons": {"lineproof.evidence.allure"},
    # for a process of its own
    "labgrid": {"lineproof.testbed.lab_holder"},
    "grpc": {"lineproof.testbed.lab_holder"},
    "lineproof.testbed.lab_holder": set(),
}
"""Packages and modules, and those that alone may import them."""


@pytest.mark.parametrize("imported", OF_FEW)
def test_what_few_may_import_is_imported_by_no_other(imported: str) -> None:
    users = {name for name in FILES if any(f"{other}.".startswith(f"{imported}.") for other in imports(name))}
    assert not {name for name in users if not any(f"{name}.".startswith(f"{few}.") for few in OF_FEW[imported])}


def test_no_file_is_long() -> None:
    long = {name: count for name, path in FILES.items() if (count := len(path.read_text().splitlines())) > 700}
    assert long == {}


def test_no_class_name_stands_for_two_things() -> None:
    places: dict[str, list[str]] = {}
    for name, path in FILES.items():
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(name)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


UNUSED = {
    "import lineproof.robot": "numpy scipy asyncssh scapy trex_stl_lib allure_commons"
    " lineproof.generators.programs.driver lineproof.studies.study",
    "import lineproof_bench.__main__": "numpy scipy robot paramiko SSHLibrary psutil allure_commons lineproof.routers",
    "from lineproof.generators.trex.client import __main__, pypi; pypi.PypiLibrary().library": "robot paramiko pydantic"
    " asyncio psutil yaml scapy.layers.l2 simpy trex_stl_lib.trex_stl_streams lineproof.config",
}
"""How each process of a simulated run begins, and what it does not use: each takes up to half a second."""


@pytest.mark.slow
@pytest.mark.parametrize("begin", UNUSED)
def test_a_process_imports_nothing_that_it_does_not_use(begin: str) -> None:
    modules = children.run((sys.executable, "-P", "-c", f"import sys; {begin}; print(*sys.modules)"), 60).stdout
    assert "lineproof" in modules.split() and set(UNUSED[begin].split()).isdisjoint(modules.split())


@pytest.mark.slow
def test_files_that_run_beside_scapy_are_under_the_gpl_too() -> None:
    client = f"{PRODUCT}.generators.trex.client"
    entries = f"{client}.__main__, {client}.profile_program, {client}.pypi, {client}.shipped"
    modules = children.run((sys.executable, "-P", "-c", f"import sys, {entries}; print(*sys.modules)"), 60).stdout
    tables = tomllib.loads((ROOT / "REUSE.toml").read_text(encoding="utf-8"))["annotations"]
    (listed,) = [table["path"] for table in tables if "GPL" in table["SPDX-License-Identifier"]]
    licensed = {path for pattern in listed for path in ROOT.glob(pattern.replace("/**", "/*.py"))}
    assert {FILES[name] for name in modules.split() if name in FILES} <= licensed


QUANTITY_NAMES = {"loses", "recovers", "pdv", "gathers", "reorders"}
"""Names of quantities that are no other word of the product: no generator, study or report has them for itself."""


def test_no_quantity_is_named_outside_of_its_folder() -> None:
    named = [
        f"{name}:{node.lineno} '{node.value}'"
        for name, path in FILES.items()
        if name.startswith(f"{PRODUCT}.") and not name.startswith((f"{PRODUCT}.quantities", f"{PRODUCT}.core.registry"))
        for node in nodes_of(path)
        if isinstance(node, ast.Constant) and node.value in QUANTITY_NAMES
    ]
    assert named == []


ROUTER_NAMES = {"vpp", "linux", "freebsd"}
NAMES_ROUTERS = {
    "lineproof.routers": "the registry: their classes by name",
    "lineproof.routers.why": "its rules know what each kernel counts, and which release has which lock",
    "lineproof.routers.vpp": "VPP runs on a Linux machine, whose facts are read as any other's",
    "lineproof.testbed.opening": "a real TRex runs on a Linux machine, too",
}
"""Modules that name a router outside of its own folder, and why."""


def routers_named_in(path: Path) -> set[str]:
    """The ROUTER_NAMES that are a text, or a word of an identifier or import, of *path*; not those of sys.platform."""
    named: list[str] = []
    for node in nodes_of(path):
        match node:
            case ast.Constant(value=str(text)) if text in ROUTER_NAMES:
                line = path.read_text(encoding="utf-8").splitlines()[node.lineno - 1]
                named += [] if "sys.platform" in line else [text]
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                named += name.lower().split("_")
            case ast.ImportFrom(module=str(name)):
                named += name.split(".")
    return ROUTER_NAMES.intersection(named)


def test_a_router_is_named_in_its_folder_and_the_registry_only() -> None:
    named = {
        name
        for name, path in FILES.items()
        if name.startswith(f"{PRODUCT}.")
        for router in routers_named_in(path)
        if not f"{name}.".startswith(f"{PRODUCT}.routers.{router}.")
    }
    assert named == NAMES_ROUTERS.keys()


# -- no time limit is measured with a clock that a person, NTP or a virtual machine's host can set


WALL_CLOCKS = {"time.time", "datetime.now", "datetime.utcnow", "datetime.today", "time.time_ns"}
COMPARED = {
    "lineproof.ceilings": "a calibration of another month is stale",
    "lineproof.generators.programs.driver": "finds out that the clock was set during a trial",
    "lineproof.generators.trex.client.running_traffic": "finds out that the clock was set during a trial",
    "lineproof_bench.wire.linux": "the kernel stamps frames with it",
}
"""Modules that may compute with it, and why."""


def computed(path: Path) -> list[int]:
    """Return the lines in which the time of day is computed or compared with, or gets another name."""
    if not any(clock.partition(".")[0] in path.read_text(encoding="utf-8") for clock in WALL_CLOCKS):
        return []
    named = [node for node in nodes_of(path) if isinstance(node, ast.ImportFrom) and node.module == "time"]
    hidden = [node.lineno for node in named if any(alias.name == "time" for alias in node.names)]
    sums = [node for node in nodes_of(path) if isinstance(node, ast.BinOp | ast.Compare)]
    calls = [node for part in sums for node in ast.walk(part) if isinstance(node, ast.Call)]
    return hidden + [node.lineno for node in calls if ast.unparse(node.func) in WALL_CLOCKS]


def test_few_compute_with_the_time_of_day() -> None:
    assert {name for name, path in FILES.items() if computed(path)} == COMPARED.keys()


# -- robot ends a run by an exception, raised wherever its main thread is: nothing there may keep it from Robot


IN_WORKER_THREADS = {"_open", "_execute", "log_in", "work", "run"}
"""Functions that only worker threads run, where no signal arrives."""


def broad(handler: ast.ExceptHandler) -> bool:
    """Return whether it catches everything, and does not raise it again."""
    caught = "" if handler.type is None else ast.unparse(handler.type)
    if caught not in ("", "Exception", "BaseException"):
        return False
    return not any(isinstance(node, ast.Raise) and node.exc is None for node in ast.walk(handler))


def catches(tree: ast.AST, function: str = "") -> list[tuple[str, int]]:
    """Handlers that keep an interrupt, each with its function and line."""
    found = []
    for node in ast.iter_child_nodes(tree):
        inner = node.name if isinstance(node, ast.FunctionDef) else function
        if isinstance(node, ast.Try):
            earlier = " ".join(ast.unparse(item.type) for item in node.handlers[:-1] if item.type)
            saved = "RobotError" in earlier or "ExecutionFailed" in earlier
            found += [(inner, item.lineno) for item in node.handlers if broad(item) and not saved]
        found += catches(node, inner)
    return found


def test_no_interrupt_is_caught() -> None:
    wrong = []
    for name, path in FILES.items():
        if not name.startswith(("lineproof.generators.trex.client.", "lineproof_bench.")):  # other processes
            found = catches(tree_of(path))
            wrong += [f"{name}:{line}" for function, line in found if function not in IN_WORKER_THREADS]
    assert wrong == []
