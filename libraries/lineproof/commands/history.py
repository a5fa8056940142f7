"""``lineproof history``: all runs in one store, and what became better or worse over time."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from datetime import UTC, datetime

from ..errors import ConfigError
from ..project import Project
from ..system.children import remedy
from ..units import counted
from ..visible import shortened
from .arguments import add_json, print_document, print_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
    parser.description = (
        "A store over all runs: SQLite in results/history.db, or PostgreSQL for a team. docs/ci.md describes its"
        " tables for SQL."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    adding = actions.add_parser("import", help="add runs; those that the store has already change nothing")
    runs = "runs: a folder with any number of them below it, as results, the beginning of an id, or a tag"
    adding.add_argument("run_names", metavar="RUN", nargs="+", help=runs)
    asking = actions.add_parser("trend", help="each sentence over the newest runs or releases; changes of its level")
    asking.add_argument("--platform", help="only this one")
    asking.add_argument("--sentence", default="", help="only sentences with these words, as '64b 1-flow'")
    since = "only from then on, as 2026-11-01 (UTC)"
    asking.add_argument("--since", metavar="DATE", type=_since, default=0.0, help=since)
    asking.add_argument("--by", choices=("run", "release"), default="run", help="what a column is (run)")
    store = "a file, or postgresql://USER@HOST/DATABASE (default: LINEPROOF_HISTORY, else results/history.db)"
    for action, act in ((adding, _import), (asking, _trend)):
        action.add_argument("--store", metavar="URL", help=store)
        add_json(action)
        action.set_defaults(act=act)


def _since(text: str) -> float:
    try:
        date = datetime.fromisoformat(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"'{shortened(text)}' is no date; expected one as 2026-11-01") from None


def run(arguments: argparse.Namespace) -> int:
    """Import or show runs. Returns 0, or 1 where some runs were not imported. Raises LineproofError."""
    try:
        return int(arguments.act(arguments))
    except ImportError as error:
        lacking = f"the history needs the extra 'history': {remedy('history')} ({error.name} is missing)"
        raise ConfigError(lacking) from None


def _import(arguments: argparse.Namespace) -> int:
    from ..evidence.history.store import HistoryStore, import_run, runs_named, store_url

    paths = list(dict.fromkeys(run for name in arguments.run_names for run in runs_named(name)))
    store = HistoryStore(store_url(arguments.store, Project.find().results), create=True)
    results = [import_run(store, path) for path in paths]
    lines = []
    for result in results:
        counts = f"{result.run}: {counted(result.sentences, 'sentence')}{', SIMULATED' * result.simulated}"
        lines.append(f"REFUSED   {result.refused}" if result.refused else f"{result.added:<9}  {counts}")
        lines += [f"           note: {note}" for note in result.notes]
    refused = sum(bool(result.refused) for result in results)
    taken = sum(result.added in ("imported", "replaced") for result in results)
    lines.append(f"{taken} of {counted(len(results), 'run')} added to {store.shown}, {refused} refused")
    data = {"store": store.shown, "runs": list(map(asdict, results)), "refused": refused}
    print_lines(lines, data, arguments.json)
    return int(bool(refused))


def _trend(arguments: argparse.Namespace) -> int:
    from ..evidence.history.store import HistoryStore, points_of, store_url, trend

    store = HistoryStore(store_url(arguments.store, Project.find().results))
    points = points_of(store, arguments.platform, arguments.sentence, arguments.since)
    if not points:
        raise ConfigError("the store has no sentence of these; leave out an option, or import more runs", store.shown)
    document = trend(points, arguments.by == "release")
    if arguments.json:
        document = replace(document, data={**document.data, "points": [point._asdict() for point in points]})
    print_document(document, arguments)
    return 0
