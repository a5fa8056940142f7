# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The process that runs a user's profile, a file in TRex's format, and answers its streams as JSON. Sends nothing.

Run as ``python -m lineproof.generators.trex.client.profile_program REQUEST [FOLDER]``; FOLDER has the client that TRex
ships, REQUEST is JSON (see :func:`..profile_loader.run_profile`). Standard output: ``{"client": …, "directions": …}``,
for each of two directions ``{"streams": […]}`` or ``{"error": …}``; or ``{"error": …}`` alone. An error has ``kind``
(``install``, ``file``), ``message`` and ``line`` or None.
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
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from ....system.signals import end_with_parent
from . import pypi, shipped
from .answers import plain_message
from .service import Refusal

TO_MAC, FROM_MAC = "00:00:00:01:00:00", "00:00:00:02:00:00"
FROM_IPV4, TO_IPV4, FROM_IPV6 = "16.0.0.1", "48.0.0.1", "::2"
"""Default addresses of packets."""

MEMORY = 2 << 30
"""Bytes of address space."""


class ProfileError(Exception):
    """An error of the profile; ``line`` of the file, if known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def main() -> NoReturn:
    """Answer the request in the arguments; end the process."""
    end_with_parent()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of profiles is not part of the answer
    try:
        answer = run(json.loads(sys.argv[1]), "".join(sys.argv[2:]))
    except Refusal as error:
        answer = {"error": {"kind": "install", "message": str(error), "line": None}}
    except ProfileError as error:
        answer = {"error": _error_data(error)}
    answers.write(json.dumps(answer))
    answers.close()
    sys.stderr.flush()
    os.kill(0, signal.SIGKILL)  # with threads and processes that the profile started
    sys.exit()


def run(request: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """The answer to *request*, with the client in *folder*; "": PyPI's. Raises Refusal, ProfileError."""
    client = _import_client(folder)
    path = Path(request["file"])
    sys.argv, sys.dont_write_bytecode = [str(path)], True
    sys.path.append(str(path.parent))  # last: no module that the client uses may come from there
    directions: list[dict[str, Any]] = []
    for direction in (0, 1):
        try:
            directions.append({"streams": _read_streams(path, direction, request["tunables"], request["named"])})
        except ProfileError as error:
            if not direction:
                raise
            directions.append({"error": _error_data(error)})
    return {"client": client, "directions": directions}


def _error_data(error: ProfileError) -> dict[str, Any]:
    return {"kind": "file", "message": str(error), "line": error.line}


# -- the library -------------------------------------------------------------------------------------------------------


def _import_client(folder: str) -> str:
    """Import the client of *folder*, or PyPI's, under both names that profiles use; return its description."""
    fix_addresses()
    if folder:
        library, name = shipped.load_library(Path(folder)), f"TRex's own, of {folder}"
        package = ModuleType("trex_stl_lib", "The former name of the client, which profiles still use.")
        package.__path__ = [str((shipped.client_folder(Path(folder)) or Path(folder)) / "trex_stl_lib")]
        sys.modules["trex_stl_lib"] = package
    else:
        library, name = pypi.load_library(), f"trex-stl-lib {importlib.metadata.version('trex-stl-lib')}"
    find_offsets(library.builder)
    read_captures_whole()
    _allow_load_without_loader()
    return f"{name}, Scapy {library.scapy.__version__}"


def _allow_load_without_loader() -> None:
    """Let ``yaml.load(file)`` work as when TRex's client was written: today PyYAML needs a loader."""
    import yaml

    original, safe = yaml.load, yaml.SafeLoader
    setattr(yaml, "load", lambda stream, Loader=safe: original(stream, Loader=Loader))  # noqa: B010  (to mypy '=' is an error)


# -- Scapy: TRex's changes of its own one, applied to that of PyPI -----------------------------------------------------


def fix_addresses() -> None:
    """Set TRex's default addresses, before the first packet, which would keep the old ones."""
    from scapy.config import conf
    from scapy.fields import Emph, IP6Field, IPField, MACField, SourceIPField
    from scapy.layers import inet, inet6, l2

    _replace(l2.Ether, dst=MACField("dst", TO_MAC), src=MACField("src", FROM_MAC))
    _replace(inet.IP, src=Emph(IPField("src", FROM_IPV4)), dst=Emph(IPField("dst", TO_IPV4)))
    _replace(inet6.IPv6, src=IP6Field("src", FROM_IPV6))
    # other layers (ARP) would use the addresses of this machine
    for kind in (l2.SourceMACField, l2.DestMACField):
        kind.i2h, kind.i2m = MACField.i2h, MACField.i2m

    def to_machine(field: Any, packet: Any, value: Any) -> Any:
        return IPField.i2m(field, packet, FROM_IPV4 if value is None else value)

    SourceIPField.i2m = to_machine
    SourceIPField.i2h = lambda field, packet, value: FROM_IPV4 if value is None else value
    conf.verb = 0


def _replace(kind: Any, **fields: Any) -> None:
    for place, field in enumerate(kind.fields_desc):
        if field.name in fields:
            kind.fields_desc[place] = fields[field.name]
            fields[field.name].register_owner(kind)


def read_captures_whole() -> None:
    """Give Scapy's raw capture reader ``read_all`` back."""
    from scapy.utils import RawPcapReader

    if not hasattr(RawPcapReader, "read_all"):
        RawPcapReader.read_all = lambda self, count=-1: list(self)[: count if count >= 0 else None]


def find_offsets(builder: Any) -> None:
    """Let the library's module *builder* find layers and fields in packets of this Scapy."""
    utility, unknown = builder.CTRexScapyPktUtl, builder.CTRexPacketBuildException

    def layer(self: Any, name: str, count: int = 0) -> tuple[Any, int]:
        for found, at in _layers(self.pkt):
            if name in (found.name, type(found).__name__):
                if not count:
                    return found, at
                count -= 1
        existing = ", ".join(type(found).__name__ for found, _ in _layers(self.pkt))
        raise unknown(-11, f"the packet has no layer '{name}'; it has {existing}")

    def field(self: Any, name: str, count: int, wanted: str) -> tuple[int, int]:
        found, at = layer(self, name, count)
        for known, offset in _fields(found):
            if known.name == wanted:
                return at + offset, 0 if hasattr(known, "size") else known.sz
        existing = ", ".join(known.name for known, _ in _fields(found))
        raise unknown(-11, f"the layer '{name}' has no field '{wanted}'; it has {existing}")

    utility._layer_offset = layer
    utility.layer_offset = lambda self, name, cnt=0: layer(self, name, cnt)[1]
    utility.get_field_offet = field


def _layers(packet: Any) -> Iterator[tuple[Any, int]]:
    """Each layer of *packet* as it is sent, and its offset."""
    from scapy.packet import NoPayload

    found, at = packet if packet.explicit else next(iter(packet)), 0
    while not isinstance(found, NoPayload):
        yield found, at
        at += len(found.self_build())
        found = found.payload


def _fields(layer: Any) -> Iterator[tuple[Any, int]]:
    """Each field of *layer* and its offset; for bit fields the offset of their byte."""
    written: Any = b""
    for field in layer.fields_desc:
        # bits of an incomplete byte are separate from the bytes
        yield field, len(written[0]) if isinstance(written, tuple) else len(written)
        written = field.addfield(layer, written, layer.getfieldval(field.name))


# -- the profile -------------------------------------------------------------------------------------------------------


def _read_streams(path: Path, direction: int, tunables: list[str], named: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The streams of one direction as data."""
    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output):
            found = _call_profile(path, direction, tunables, named) if path.suffix == ".py" else _load(path, tunables)
            return [_stream_data(stream, number) for number, stream in enumerate(found, 1)]
    except ProfileError:
        raise
    except SyntaxError as error:
        where = "" if error.filename == str(path) else f" in {error.filename}, line {error.lineno}"
        line = error.lineno if not where else _line_in(error, path)
        raise ProfileError(f"is not Python{where}: {error.msg}", line) from None
    except SystemExit as error:
        last = next((row for row in reversed(output.getvalue().splitlines()) if row.strip()), "")
        words = re.sub(r"^.*?error: ", "", last).strip()
        raise ProfileError(
            f"ends itself (exit {error.code})" + (f": {words}" if words else ""), _line_in(error, path)
        ) from None
    except BaseException as error:  # a user's code may raise anything
        kind = type(error).__name__
        text = plain_message(error).removeprefix(f"{kind}: ")[:300]
        raise ProfileError(f"fails with {kind}: {text}", _line_in(error, path)) from None


def _load(path: Path, tunables: list[str]) -> list[Any]:
    """The streams of a file of data, which has no directions: YAML, of which JSON is a part."""
    if tunables:
        raise ProfileError("takes no tunables; expected a profile that is a '.py' file")
    return list(importlib.import_module("trex_stl_lib.api").STLProfile.load_yaml(str(path)).get_streams())


def _call_profile(path: Path, direction: int, tunables: list[str], named: Mapping[str, Any]) -> list[Any]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ProfileError("is no Python file; expected a name that ends in '.py'")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
    register = getattr(module, "register", None)
    if not callable(register):
        raise ProfileError("has no function 'register()'; expected one that returns an object with 'get_streams'")
    get_streams = getattr(register(), "get_streams", None)
    if not callable(get_streams):
        raise ProfileError("what its 'register()' returns has no 'get_streams'")
    arguments = {**named, "direction": direction, "port_id": direction, "tunables": tunables}
    takes = inspect.signature(get_streams).parameters
    if not any(item.kind is item.VAR_KEYWORD for item in takes.values()):
        unknown = [name for name in named if name not in takes] if "tunables" not in takes else []
        if unknown or (tunables and not named and "tunables" not in takes):
            known = ", ".join(name for name in takes if name not in ("direction", "port_id")) or "none"
            raise ProfileError(f"has no tunable '{(unknown or tunables)[0]}'; it has {known}")
        arguments = {name: value for name, value in arguments.items() if name in takes}
    found = get_streams(**arguments)
    if hasattr(found, "get_streams"):
        found = found.get_streams()
    found = list(found) if isinstance(found, list | tuple) else [] if found is None else [found]
    for number, stream in enumerate(found, 1):
        if not hasattr(stream, "to_json") or not hasattr(stream, "fields"):
            raise ProfileError(f"'get_streams' returns, as number {number}, a {type(stream).__name__} and no STLStream")
    return found


def _stream_data(stream: Any, number: int) -> dict[str, Any]:
    """A stream as ``add_stream`` takes it, with its name and the name of the next one."""
    found = {**stream.to_json(), "name": stream.name, "next": stream.next}
    try:
        copy: dict[str, Any] = json.loads(json.dumps(found))
    except (TypeError, ValueError) as error:
        raise ProfileError(f"stream {number} cannot be written as JSON ({error})") from None
    return copy


def _line_in(error: BaseException, path: Path) -> int | None:
    """The last line of the profile in the traceback of *error*."""
    rows = [row.lineno for row in traceback.extract_tb(error.__traceback__) if Path(row.filename) == path]
    return rows[-1] if rows else None


if __name__ == "__main__":
    main()
