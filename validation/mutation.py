"""``python validation/mutation.py``: measures how many mutants of the heart's modules the quick tests kill.

A mutant is one small change (``<`` becomes ``<=``, an argument None, a constant one more); a test that fails kills it.
By hand, from the root, where the extra ``dev`` is installed and ``pip install mutmut==3.8.1 coverage==7.17.3``:

    python validation/mutation.py --seed 30 --mutants 100 --out validation/mutation-COMMIT.md [MODULE ...]

Mutations: the operators of mutmut on its syntax tree. Left out: annotations, imports, decorators, arguments of ``len``
and ``isinstance``, literals with a space (prose, which golden files compare), and lines that only an import runs. Drawn
with the seed: a line, one of its operators, one of that operator's mutants, each with equal chances and none twice.

Tests: those of ``pytest --quick`` whose ``coverage`` context has the line, at most LIMIT: the file's own
(``test_NAME*.py``) first, then those that run the fewest lines of the heart. Hypothesis draws the same examples each
time, and makes no failure smaller. A mutant is a fork of the collected session, in which the code of its functions is
exchanged. Without a mutant, every test used must pass, else all ends in error.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import random
import resource
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import coverage
import hypothesis
import libcst
import pytest
from coverage.parser import PythonParser
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators
from scipy.stats import binomtest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "libraries" / "lineproof"
MODULES = {name: [name] for name in ("core/rule", "core/verdict", "core/sentence", "core/trial", "core/ledger")}
MODULES["doubts"] = ["core/doubts", "session/came_back", "session/judging", "ceilings/__init__"]
MODULES["evidence/run_files"] = ["evidence/run_files"]
MODULES |= {"routers/journal": ["routers/journal", "routers/changes"], "rejudge": ["evidence/rejudge"]}
"""Name in the table -> files that are measured together."""
LIMIT, CPU_SECONDS, WALL_SECONDS, MEMORY = 40, 30, 1800, 6 << 30
"""At most so many tests of a mutant; one that needs more of the others is killed by it."""
LOG = os.fdopen(os.dup(2), "w", buffering=1)


@dataclass
class Mutant:
    """A changed ``source``; ``tests``: ids of those that it must survive, none where no test reaches it."""

    path: Path
    line: int
    change: str
    source: str
    tests: tuple[str, ...] = ()
    outcome: str = ""


class Candidates(libcst.CSTVisitor):  # type: ignore[misc]  # libcst is installed by hand
    """All mutations of a file: line -> name of the operator -> node and what replaces it."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.line = 1
        self.mutations: dict[int, dict[str, list[tuple[Any, Any]]]] = defaultdict(lambda: defaultdict(list))

    def on_visit(self, node: libcst.CSTNode) -> bool:
        """Collect the mutations of *node*, and return whether those of its children count."""
        if position := self.get_metadata(PositionProvider, node, None):
            self.line = position.start.line
        left_out = isinstance(node, libcst.Annotation | libcst.Decorator | libcst.Import | libcst.ImportFrom)
        if isinstance(node, libcst.Call) and isinstance(node.func, libcst.Name):
            left_out = node.func.value in ("len", "isinstance")
        if left_out or (isinstance(node, libcst.SimpleString) and " " in node.value):
            return False
        for kind, operator in mutation_operators:
            for mutated in operator(node) if isinstance(node, kind) else ():
                self.mutations[self.line][operator.__name__].append((node, mutated))
        return True


class Reach:
    """The quick tests that run each line, from the *data* of :func:`measure`."""

    def __init__(self, data: Path, collected: list[str]) -> None:
        self.lines = defaultdict[str, dict[int, set[str]]](dict)
        read = coverage.CoverageData(str(data))
        read.read()
        for file in read.measured_files():
            for line, names in read.contexts_by_lineno(file).items():
                # what a fixture of a whole file runs is of all its tests; an import is the context ""
                shared = tuple(name[:-1] for name in names if name.endswith("::*"))
                whole = {test for test in collected if shared and test.startswith(shared)}
                self.lines[file][line] = ({*names} & {*collected}) | whole | ({*names} & {""})
        self.of = Counter(test for lines in self.lines.values() for tests in lines.values() for test in tests)

    def tests(self, path: Path, line: int) -> tuple[str, ...] | None:
        """Return the tests of *line*, or of its statement where the line has none; None: only an import runs it."""
        lines, parser = self.lines[str(path)], PythonParser(filename=str(path))
        parser.parse_source()
        same = [tests for own, tests in lines.items() if parser.first_line(own) == parser.first_line(line)]
        tests = lines.get(line) or set().union(*same)
        if "" in tests:
            return None
        own = f"test_{path.stem}"
        return tuple(sorted(tests, key=lambda test: (f"/{own}" not in test, self.of[test], test))[:LIMIT])


def drawn(names: list[str], number: int, dice: random.Random, reach: Reach) -> tuple[list[Mutant], int]:
    """Return *number* mutants of the files *names*, or all if there are fewer, and how many there are."""
    mutants: dict[str, Mutant] = {}
    pool: dict[tuple[Path, int], tuple[libcst.Module, dict[str, list[tuple[Any, Any]]]]] = {}
    for path in (SOURCE / f"{name}.py" for name in names):
        wrapper, candidates = MetadataWrapper(libcst.parse_module(path.read_text(encoding="utf-8"))), Candidates()
        wrapper.visit(candidates)
        pool |= {(path, line): (wrapper.module, kinds) for line, kinds in sorted(candidates.mutations.items())}
    pool = {place: own for place, own in pool.items() if reach.tests(*place) is not None}
    total = sum(len(pairs) for _, kinds in pool.values() for pairs in kinds.values())
    while pool and len(mutants) < number:
        path, line = dice.choice(list(pool))
        module, kinds = pool[path, line]
        pairs = kinds[kind := dice.choice(list(kinds))]
        node, mutated = pairs.pop(dice.randrange(len(pairs)))
        if not pairs:
            del kinds[kind]
        if not kinds:
            del pool[path, line]
        source = module.deep_replace(node, mutated).code
        change = " → ".join(" ".join(module.code_for_node(part).split())[:80] for part in (node, mutated))
        with contextlib.suppress(SyntaxError):
            if source != module.code and compile(source, path, "exec"):
                mutants.setdefault(source, Mutant(path, line, change, source, reach.tests(path, line) or ()))
    return sorted(mutants.values(), key=lambda mutant: (mutant.path, mutant.line)), total


def session(arguments: list[str], loop: Callable[[pytest.Session], bool | None], context: Any = str) -> int:
    """Run pytest; *loop* replaces its own unless it returns None; *context* is told what the coming lines belong to."""

    class Hooks:
        @pytest.hookimpl(trylast=True)
        def pytest_configure(self) -> None:
            phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]  # a failure is not made smaller
            same = hypothesis.settings(hypothesis.settings(), phases=phases, derandomize=True, database=None)
            hypothesis.settings.register_profile("same", same)
            hypothesis.settings.load_profile("same")

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
            return loop(session)

        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
            context(item.nodeid)
            return (yield)

        @pytest.hookimpl(wrapper=True)
        def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[Any]:
            if fixturedef.scope != "function":  # several tests of the file share it
                context(f"{request.node.nodeid.partition('::')[0]}::*")
            result = yield
            context(request._pyfuncitem.nodeid)
            return result

    return int(pytest.main(["--quick", "-p", "no:cacheprovider", *arguments], plugins=[Hooks()]))


def measure(data: Path) -> int:
    """Write to *data* which test runs which line of the heart."""
    files = [str(SOURCE / f"{name}.py") for names in MODULES.values() for name in names]
    tracer = coverage.Coverage(data_file=data, include=files, config_file=False)
    with tracer.collect():
        status = session([], lambda session: None, tracer.switch_context)
    tracer.save()
    return status


def codes(source: str, path: Path) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """Yield every code object of *source*, by its qualified name and which one of that name it is."""
    stack, number = [compile(source, path, "exec")], Counter[str]()
    while stack:
        code = stack.pop()
        number[code.co_qualname] += 1
        yield (code.co_qualname, number[code.co_qualname]), code
        stack += [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def survives(mutant: Mutant, collected: pytest.Session) -> bool:
    """Run the tests of *mutant* in this process, which is of no other use afterwards, until one fails."""
    names = {code: name for name, code in codes(mutant.path.read_text(encoding="utf-8"), mutant.path)}
    changed = dict(codes(mutant.source, mutant.path))
    for function in (thing for thing in gc.get_objects() if isinstance(thing, FunctionType)):
        if function.__code__.co_filename == str(mutant.path):
            function.__code__ = changed[names[function.__code__]]
    items = {item.nodeid: item for item in collected.items}
    chosen = [items[test] for test in mutant.tests if test in items]
    for item, following in zip_longest(chosen, chosen[1:]):
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        if collected.testsfailed:
            print("  fails:", item.nodeid, file=LOG)
            return False
    return True


def outcome(mutant: Mutant, collected: pytest.Session, seconds: int) -> str:
    """Return what becomes of *mutant* in a fork of this process."""
    if not mutant.tests:
        return "uncovered"
    if not (child := os.fork()):
        status = 2
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            signal.alarm(WALL_SECONDS)
            status = int(not survives(mutant, collected))
        finally:
            os._exit(status)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {0: "survived", 1: "killed", 2: "error"}.get(code, "timeout")


def table_line(name: str, mutants: list[Mutant], total: int) -> str:
    """Return the line of a module in the table, with Wilson's interval."""
    ends = Counter(mutant.outcome for mutant in mutants)
    killed = ends["killed"] + ends["timeout"]
    low, high = binomtest(killed, len(mutants)).proportion_ci(method="wilson")
    score = f"{100 * killed / len(mutants):.0f} % ({100 * low:.0f} – {100 * high:.0f})"
    return f"| {name} | {len(mutants)} of {total} | {killed} | {score} | {ends['uncovered']} | {ends['timeout']} |"


def report(results: dict[str, tuple[list[Mutant], int]], seed: int) -> str:
    """Return the table of all modules, and the survivors line by line."""
    lines = [f"# Mutants that the quick tests kill (seed {seed})", ""]
    lines += ["| module | mutants | killed | score (95 %) | uncovered | killed by a limit |", f"|{' --- |' * 6}"]
    lines += [table_line(name, *result) for name, result in results.items()]
    for name, (mutants, _) in results.items():
        lines += ["", f"## Survivors of {name}", ""]
        for mutant in mutants:
            if mutant.outcome not in ("killed", "timeout"):
                place = f"{mutant.path.relative_to(SOURCE)}:{mutant.line}"
                lines.append(f"- {place} `{mutant.change}`{' (uncovered)' * (not mutant.tests)}")
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", default=list(MODULES), metavar="MODULE", help=", ".join(MODULES))
    parser.add_argument("--seed", type=int, default=30)
    parser.add_argument("--mutants", type=int, default=100, help="of each module")
    parser.add_argument("--contexts", type=Path, help="file for coverage's contexts; one that is there is used again")
    parser.add_argument("--out", type=Path, required=True, help="file of the report, in Markdown")
    given = parser.parse_args()
    os.chdir(ROOT)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    results: dict[str, tuple[list[Mutant], int]] = {}
    with tempfile.TemporaryDirectory() as work:
        contexts = (given.contexts or Path(work) / "contexts").absolute()
        os.environ |= {"PYTEST_ADDOPTS": f"--basetemp={work}/tests", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        if not contexts.exists():
            if not (child := os.fork()):
                os._exit(measure(contexts))
            if os.waitpid(child, 0)[1]:
                sys.exit("a test fails without a mutant")

        def loop(collected: pytest.Session) -> bool:
            reach = Reach(contexts, [test.nodeid for test in collected.items])
            for name in given.modules:
                dice = random.Random(f"{given.seed} {name}")
                mutants, total = results[name] = drawn(MODULES[name], given.mutants, dice, reach)
                path, used = mutants[0].path, dict.fromkeys(test for mutant in mutants for test in mutant.tests)
                same = Mutant(path, 0, "unchanged", path.read_text(encoding="utf-8"), tuple(used))
                if outcome(same, collected, 900) not in ("survived", "uncovered"):
                    pytest.exit(f"{name}: a test fails without a mutant", 3)
                for mutant in mutants:
                    mutant.outcome = outcome(mutant, collected, CPU_SECONDS)
                    print(mutant.outcome, mutant.path.name, mutant.line, mutant.change, file=LOG)
                print(table_line(name, mutants, total), file=LOG)
                given.out.write_text(report(results, given.seed), encoding="utf-8")
            return True

        sys.exit(session([], loop))


if __name__ == "__main__":
    main()
