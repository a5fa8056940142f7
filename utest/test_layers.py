"""What docs/architecture.md says of who imports whom, compared with the imports. Nothing is imported here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "libraries" / "linerate"
DOCUMENT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGES = ("embedded", "evidence", "generators", "methods", "routers", "stats", "testbed")


def module(path: Path) -> str:
    parts = path.relative_to(CORE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module(path): path for path in sorted(CORE.rglob("*.py"))}


def statements(nodes: Iterator[ast.AST], functions: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports; those within functions only if asked for, those for types alone always: they tie modules too."""
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from statements(ast.iter_child_nodes(node), functions)


@cache
def imports(name: str, functions: bool = True) -> frozenset[str]:
    """What module *name* imports: modules of the core where they are, else as it is written."""
    path, found = FILES[name], set()
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in statements(ast.iter_child_nodes(tree), functions):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
            continue
        above = package[: len(package) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            found.add(whole if (whole := f"{base}.{alias.name}") in FILES else base)
    return frozenset(found)


def part(name: str) -> str:
    """The package of the core, or its module, that *name* is in."""
    return name.split(".")[1] if "." in name else name


def parts() -> Mapping[str, set[str]]:
    """Which parts of the core each part imports."""
    found: dict[str, set[str]] = {}
    for name in FILES:
        mine = found.setdefault(part(name), set())
        mine |= {part(other) for other in imports(name) if other in FILES} - {part(name), "linerate"}
    return found


def arrows() -> list[tuple[list[str], list[str]]]:
    """Left and right of each arrow of the diagram that speaks of the core."""
    diagram = DOCUMENT.split("```")[1]
    found = []
    for line in diagram.splitlines():
        if not re.match(r"[a-z_]+ ─▶", line):
            continue
        sides = [[word.strip() for word in side.split(",")] for side in re.sub(r"\([^)]*\)", "", line).split("─▶")]
        found += list(pairwise(sides))
    return found


def test_no_module_imports_itself_by_way_of_others() -> None:
    for functions in (False, True):
        graph = {name: [other for other in imports(name, functions) if other in FILES] for name in FILES}
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            pytest.fail(" imports ".join(error.args[1]))


@pytest.mark.parametrize(("left", "right"), arrows(), ids=str)
def test_every_arrow_is_an_import(left: list[str], right: list[str]) -> None:
    found = parts()
    for target in right:
        assert any(target in found[source] for source in left), f"{left} do not import {target}"
        assert not any(source in found[target] for source in left), f"{target} imports one of {left}"


def test_there_are_arrows() -> None:
    assert len(arrows()) >= 15


@pytest.mark.parametrize("package", PACKAGES)
def test_the_table_says_what_a_package_imports(package: str) -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", DOCUMENT, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", rows[package])) == parts()[package]


def test_generators_and_routers_do_not_know_each_other() -> None:
    assert "routers" not in parts()["generators"] and "generators" not in parts()["routers"]


def test_nothing_but_the_studies_imports_the_embedded_bench() -> None:
    users = {name for name, others in parts().items() if "embedded" in others}
    assert users == {"studies"}
    keywords = (ROOT / "libraries").glob("*.py")
    assert [path.name for path in keywords if "linerate.embedded" in path.read_text(encoding="utf-8")] == []


def test_the_core_imports_no_robot() -> None:
    robots = {"robot", "allure_robotframework", "allure_commons"}
    users = {name for name in FILES if any(other.partition(".")[0] in robots for other in imports(name))}
    assert users <= {"linerate.evidence.allure"}
