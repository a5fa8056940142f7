"""``lineproof history``: all runs in one store, and what became better or worse over time (extra ``history``)."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..evidence.document import Code, Document, Section, as_csv, as_json, as_text
from ..evidence.history.address import StoreAddress, store_address
from ..files import write_whole
from ..project import Project
from ..units import counted
from ..visible import visible
from .arguments import add_json, print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
    parser.description = (
        "A store over all runs: SQLite in results/history.db, or PostgreSQL for a team. docs/history.md describes its"
        " tables and views for SQL."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    found = actions.add_parser("import", help="add runs; those that the store has already change nothing")
    found.add_argument(
        "paths",
        metavar="RUN",
        type=Path,
        nargs="+",
        help="folder of a run, or a folder with runs in it, as results",
    )
    found.add_argument("--replace", action="store_true", help="take a closed run that differs from the stored one")
    _common(found)
    found.set_defaults(act=_import)
    found = actions.add_parser("trend", help="a sentence over time: its level, its changes, the releases")
    found.add_argument("--platform", help="only this one")
    found.add_argument("--software", help="only this one")
    found.add_argument("--testbed", help="only this one")
    found.add_argument("--sentence", help="only sentences with these words, as '64b 1-flow'")
    found.add_argument("--since", metavar="DATE", help="only from then on, as 2026-11-01 (UTC)")
    found.add_argument("--svg", metavar="FILE", type=Path, help="draw it")
    found.add_argument("--csv", metavar="FILE", type=Path, help="write its figures")
    _common(found)
    found.set_defaults(act=_trend)
    found = actions.add_parser("list", help="the runs in the store")
    _common(found)
    found.set_defaults(act=_list)


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--store",
        metavar="URL",
        help="a file, or postgresql://USER@HOST/DATABASE (default: LINEPROOF_HISTORY, else results/history.db)",
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Do it. 0: done, 1: some runs were not imported. Raises LineproofError."""
    address = store_address(arguments.store, Project.find().results)
    status: int = arguments.act(arguments, address)
    return status


def _import(arguments: argparse.Namespace, address: StoreAddress) -> int:
    from ..evidence.history.importing import Imported, find_runs, import_all

    paths = list(dict.fromkeys(run for path in arguments.paths for run in find_runs(path)))

    def show(item: Imported) -> None:
        if arguments.json:
            return
        if item.refused:
            print(f"REFUSED   {item.refused}")
            return
        simulated = ", SIMULATED" if item.simulated else ""
        print(f"{item.added:<9}  {visible(item.run)}: {counted(item.trials, 'trial')}{simulated}")
        for note in item.notes:
            print(f"           note: {visible(note)}")

    found = import_all(address, paths, arguments.replace, show)
    refused = [item for item in found if item.refused]
    if arguments.json:
        print_json({"store": address.shown, "runs": [vars(item) for item in found], "refused": len(refused)})
    else:
        taken = sum(item.added in ("imported", "replaced") for item in found)
        print(f"{taken} of {counted(len(found), 'run')} added to {address.shown}, {len(refused)} refused")
    if refused and len(found) == 1:
        raise ConfigError(refused[0].refused)
    return int(bool(refused))


def _trend(arguments: argparse.Namespace, address: StoreAddress) -> int:
    from ..evidence.history.store import HistoryStore
    from ..evidence.history.trend_forms import Selection, series_of, since_when, trend_svg, trends

    since = None if arguments.since is None else since_when(arguments.since)
    choice = Selection(arguments.platform, arguments.software, arguments.testbed, arguments.sentence, since)
    found = series_of(choice.rows(HistoryStore.open(address)))
    if not found:
        raise ConfigError("the store has no sentence of these; 'lineproof history list' shows its runs", address.shown)
    shown = trends(found)
    if arguments.csv is not None:
        write_whole(arguments.csv, as_csv(shown))
    if arguments.svg is not None:
        write_whole(arguments.svg, trend_svg(found))
    print(as_json(shown) if arguments.json else as_text(shown), end="")
    return 0


def _list(arguments: argparse.Namespace, address: StoreAddress) -> int:
    from ..evidence.history.store import HistoryStore

    rows = HistoryStore.open(address).query(
        "SELECT run, started, testbed, platform, software, release, goal, simulated, closed, sha256, folder,"
        " (SELECT COUNT(*) FROM sentences WHERE sentences.run_id = runs.id) AS sentences,"
        " (SELECT COUNT(*) FROM trials WHERE trials.run_id = runs.id) AS trials"
        " FROM runs ORDER BY started, run"
    )
    title = f"{counted(len(rows), 'run')} in {address.shown}"
    # SQLite has no truth values
    data = [{**row, "simulated": bool(row["simulated"]), "closed": bool(row["closed"])} for row in rows]
    lines = [Code("\n".join(map(_run_line, rows)))] if rows else []
    shown = Document(title, [Section("", lines)], data={"store": address.shown, "runs": data})
    print(as_json(shown) if arguments.json else as_text(shown), end="")
    return 0


def _run_line(run: Mapping[str, Any]) -> str:
    from ..evidence.history.tables import release_in_short
    from ..evidence.history.trend_forms import day

    marks = [word for word, said in (("SIMULATED", run["simulated"]), ("incomplete", not run["closed"])) if said]
    known = ", ".join(filter(None, (run["platform"], run["testbed"], release_in_short(run["release"]))))
    when = "no date   " if run["started"] is None else day(run["started"])
    counts = f"{counted(run['sentences'], 'sentence')}, {counted(run['trials'], 'trial')}"
    return "  ".join([when, run["run"], known, counts, *marks])
