# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The process that runs a user's profile, a module in TRex's format, and answers its streams as JSON. Sends nothing.

Standard input: one object (see :func:`.programs.ask`). Standard output: ``{"client": …, "directions": […]}``, for each
direction ``{"streams": […]}`` or ``{"error": …}``; or ``{"error": …}`` alone. An error has ``kind`` (``install``,
``file``), ``message`` and ``line``, where there is one. What the profile prints goes to standard error.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import inspect
import io
import json
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from ..client_folders import interactive
from . import pypi, scapy_bridge, shipped
from .service import Refusal

LEAKED = (
    *("argparse", "base64", "binascii", "collections", "copy", "inspect", "ipaddress", "json", "math", "os", "random"),
    *("re", "socket", "string", "struct", "sys", "time", "traceback", "yaml"),
)
"""Modules that ``from trex_stl_lib.api import *`` brings along in TRex's own client, and which profiles rely on."""


Answered = Callable[[Mapping[str, Any]], NoReturn]

PATIENCE = 3
"""How often a profile is told that its time is up."""


class TookTooLong(BaseException):
    """Not an Exception, lest a profile that passes over all errors passes over this one."""


class Wrong(Exception):
    """What is wrong with the profile, in words; ``line`` of the file, where it is known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def main() -> NoReturn:
    """Read the request, answer it, end the process."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    request = json.loads(sys.stdin.read())
    os.dup2(2, 1)  # what profiles print is no answer
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    def answered(answer: Mapping[str, Any]) -> NoReturn:
        answers.write(json.dumps(answer))
        answers.close()
        sys.stderr.flush()
        os._exit(0)  # threads that the profile started are not waited for

    try:
        answer = run(request, answered)
    except Refusal as error:
        answer = {"error": {"kind": "install", "message": str(error), "line": None}}
    except Wrong as error:
        answer = {"error": _told(error)}
    answered(answer)


def run(request: Mapping[str, Any], give_up: Answered) -> dict[str, Any]:
    """The answer to *request*; *give_up* sends one and ends the process. Raises Refusal, Wrong."""
    client = _client(request["client"])
    path = Path(request["file"])
    sys.argv, sys.dont_write_bytecode = [str(path)], True
    sys.path.insert(0, str(path.parent))
    directions: list[dict[str, Any]] = []
    for direction in (0, 1):
        try:
            with _limited(request["limit"], path, give_up):
                directions.append({"streams": _streams(path, direction, request["tunables"], request["named"])})
        except Wrong as error:
            if not direction:
                raise
            directions.append({"error": _told(error)})
    return {"client": client, "directions": directions}


def _told(error: Wrong) -> dict[str, Any]:
    return {"kind": "file", "message": str(error), "line": error.line}


# -- the library -------------------------------------------------------------------------------------------------------


def _client(folder: str) -> str:
    """Import the client of *folder*, or PyPI's, under both of the names that profiles use; what it is."""
    scapy_bridge.fix_addresses()
    if folder:
        library, name = shipped.load_library(Path(folder)), f"TRex's own, of {folder}"
        package = ModuleType("trex_stl_lib", "The name that the client had once, and profiles still use.")
        package.__path__ = [str((interactive(Path(folder)) or Path(folder)) / "trex_stl_lib")]
        sys.modules["trex_stl_lib"] = package
    else:
        library, name = pypi.load_library(), f"trex-stl-lib {importlib.metadata.version('trex-stl-lib')}"
        _newer_names()
    scapy_bridge.find_offsets(library.builder)
    scapy_bridge.read_captures_whole()
    _keep_yaml()
    return f"{name}, Scapy {library.scapy.__version__}"


def _newer_names() -> None:
    """Let ``trex.stl.api`` and its like mean the modules of trex-stl-lib 0.3.

    But for HLTAPI: 0.3's cannot be imported, and fixed it would leave VLAN tags out without a word.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        api = importlib.import_module("trex_stl_lib.api")
    for package in ("trex", "trex.stl"):
        sys.modules[package] = ModuleType(package, "Another name of trex-stl-lib.")
        sys.modules[package].__path__ = []
    for known in sorted(item for item in sys.modules if item.startswith("trex_stl_lib.")):
        sys.modules["trex.stl." + known.removeprefix("trex_stl_lib.")] = sys.modules[known]
    api.__dict__.setdefault("TRexError", api.__dict__.get("STLError"))
    for name in LEAKED:
        if not hasattr(api, name):
            setattr(api, name, importlib.import_module(name))


def _keep_yaml() -> None:
    """Let ``yaml.load(file)`` be what it was when TRex's client was written: PyYAML wants a loader named today."""
    import yaml

    original, safe = yaml.load, yaml.SafeLoader
    setattr(yaml, "load", lambda stream, Loader=safe: original(stream, Loader=Loader))  # noqa: B010


# -- the profile -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _limited(seconds: float, path: Path, give_up: Answered) -> Iterator[None]:
    """Raise Wrong, with the line that the profile was at, where the block takes longer than *seconds*.

    A profile that passes over that error as well is given up.
    """
    told = 0

    def over(*_: object) -> None:
        nonlocal told
        told += 1
        if told > PATIENCE:
            give_up({"error": _told(Wrong(f"did not end within {seconds:g} s, and takes no notice"))})
        raise TookTooLong

    signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
    try:
        yield
    except TookTooLong as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise Wrong(f"did not end within {seconds:g} s", _line(error, path)) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _streams(path: Path, direction: int, tunables: list[str], named: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The streams of one direction as data."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            found = _called(path, direction, tunables, named)
            return [_data(stream, number, path) for number, stream in enumerate(found, 1)]
    except (Wrong, TookTooLong):
        raise
    except SyntaxError as error:
        where = "" if error.filename == str(path) else f" in {error.filename}, line {error.lineno}"
        line = error.lineno if not where else _line(error, path)
        raise Wrong(f"is not Python{where}: {error.msg}", line) from None
    except SystemExit as error:
        last = next((row for row in reversed(said.getvalue().splitlines()) if row.strip()), "")
        words = re.sub(r"^.*?error: ", "", last).strip()
        raise Wrong(f"ends itself (exit {error.code})" + (f": {words}" if words else ""), _line(error, path)) from None
    except BaseException as error:
        raise Wrong(f"fails with {type(error).__name__}: {_words(error)}", _line(error, path)) from None


def _called(path: Path, direction: int, tunables: list[str], named: Mapping[str, Any]) -> list[Any]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
    register = getattr(module, "register", None)
    if not callable(register):
        raise Wrong("has no function 'register()'; expected one that returns an object with 'get_streams'")
    asked = getattr(register(), "get_streams", None)
    if not callable(asked):
        raise Wrong("what its 'register()' returns has no 'get_streams'")
    offered = {**named, "direction": direction, "port_id": direction, "tunables": tunables}
    takes = inspect.signature(asked).parameters
    if not any(item.kind is item.VAR_KEYWORD for item in takes.values()):
        strangers = [name for name in named if name not in takes] if "tunables" not in takes else []
        if strangers or (tunables and not named and "tunables" not in takes):
            known = ", ".join(name for name in takes if name not in ("direction", "port_id")) or "none"
            raise Wrong(f"has no tunable '{(strangers or tunables)[0]}'; it has {known}")
        offered = {name: value for name, value in offered.items() if name in takes}
    found = asked(**offered)
    if hasattr(found, "get_streams"):
        found = found.get_streams()
    found = list(found) if isinstance(found, list | tuple) else [] if found is None else [found]
    for number, stream in enumerate(found, 1):
        if not hasattr(stream, "to_json") or not hasattr(stream, "fields"):
            raise Wrong(f"'get_streams' returns, as number {number}, a {type(stream).__name__} and no STLStream")
    return found


def _data(stream: Any, number: int, path: Path) -> dict[str, Any]:
    """A stream as ``add_stream`` takes it, with its name and the name of the next one."""
    found = {**stream.to_json(), "name": stream.name, "next": stream.next}
    try:
        copy: dict[str, Any] = json.loads(json.dumps(found))
    except (TypeError, ValueError) as error:
        raise Wrong(f"stream {number} cannot be written as JSON ({error})") from None
    return copy


def _line(error: BaseException, path: Path) -> int | None:
    """The last line of the profile that *error* came by."""
    rows = [row.lineno for row in traceback.extract_tb(error.__traceback__) if Path(row.filename) == path]
    return rows[-1] if rows else None


def _words(error: BaseException) -> str:
    """What *error* says, in one line. The libraries' own errors fail where they are asked for it by str()."""
    said = getattr(error, "message", None) or getattr(error, "msg", None)
    if not isinstance(said, str):
        try:
            said = str(error)
        except Exception:
            said = repr(error.args)
    return " ".join(said.split())[:300]


if __name__ == "__main__":
    main()
