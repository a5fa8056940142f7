"""What ``lineproof doctor`` warns of is in the catalogue of messages."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from support.paths import LIBRARIES

COMMANDS = LIBRARIES / "lineproof" / "commands"
CATALOGUE = (LIBRARIES.parent / "docs" / "errors.md").read_text()


def beginning(node: ast.expr) -> str | None:
    """A literal, or an f-string up to its first value."""
    if isinstance(node, ast.JoinedStr):
        node = node.values[0]
    return str(node.value).strip() if isinstance(node, ast.Constant) else None


def warned_of() -> Iterator[str]:
    for file in ("doctor.py", "router_checks.py"):
        for function in ast.walk(ast.parse((COMMANDS / file).read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            names: dict[str, ast.expr] = {}
            for node in ast.walk(function):
                if isinstance(node, ast.Assign):
                    for target in node.targets:
                        values = [(target, node.value)]
                        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                            values = list(zip(target.elts, node.value.elts, strict=True))
                        names |= {name.id: value for name, value in values if isinstance(name, ast.Name)}
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "warning":
                    first = node.args[0]
                    found = beginning(names[first.id] if isinstance(first, ast.Name) else first)
                    assert found, ast.unparse(node)
                    yield found


def test_each_warning_of_doctor_has_a_row() -> None:
    found = sorted(set(warned_of()))
    assert {"router facts", "leftovers", "port", "router interface", "router configuration"} <= set(found)
    assert [name for name in found if f"`warning {name}" not in CATALOGUE] == []
