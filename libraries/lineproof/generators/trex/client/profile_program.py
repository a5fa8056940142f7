"""The process that runs a user's profile, a file in TRex's format, and answers its streams as JSON. Sends nothing.

Run as ``python -m lineproof.generators.trex.client.profile_program REQUEST [FOLDER]``; FOLDER has the client that TRex
ships, REQUEST is JSON (see :func:`..profile_loader.run_profile`). Standard output: ``{"client": …, "directions": …}``,
for each of two directions ``{"streams": […]}`` or ``{"error": {"message": …, "line": …}}``; ``{"error": "…"}`` if there
is no client.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import json
import os
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from ....system.signals import end_with_parent
from . import pypi, shipped
from .answers import plain_message
from .service import Refusal
from .sockets import limit_memory

TO_MAC, FROM_MAC = "00:00:00:01:00:00", "00:00:00:02:00:00"
FROM_IPV4, TO_IPV4, FROM_IPV6 = "16.0.0.1", "48.0.0.1", "::2"
"""Default addresses of packets."""


def main() -> NoReturn:
    """Answer the request in the arguments; end the process."""
    end_with_parent()
    limit_memory(resource.RLIMIT_AS)
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of profiles is not part of the answer
    try:
        answer = run(json.loads(sys.argv[1]), "".join(sys.argv[2:]))
    except Refusal as error:
        answer = {"error": str(error)}
    output.write(json.dumps(answer))
    output.close()
    sys.stderr.flush()
    os.kill(0, signal.SIGKILL)  # with threads and processes that the profile started
    sys.exit()


def run(request: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return the answer to *request*, with the client in *folder*; "": PyPI's. Raises Refusal without a client."""
    client = _import_client(folder)
    path = Path(request["file"])
    sys.argv, sys.dont_write_bytecode = [str(path)], True
    sys.path.append(str(path.parent))  # last: no module that the client uses may come from there
    directions = [_direction(path, number, request["tunables"], request["named"]) for number in (0, 1)]
    return {"client": client, "directions": directions}


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
        library, name = pypi.load_library(), pypi.NAME
    find_offsets(library.builder)
    read_captures_whole()
    import yaml

    # as when TRex's client was written: today PyYAML needs a loader
    original, safe = yaml.load, yaml.SafeLoader
    setattr(yaml, "load", lambda stream, Loader=safe: original(stream, Loader=Loader))  # noqa: B010  (to mypy '=' is an error)
    return f"{name}, Scapy {library.scapy.__version__}"


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

    def layer(self: Any, name: str, count: int = 0) -> tuple[Any, int]:
        layers = list(_layers(self.pkt))
        named = [place for place in layers if name in (place[0].name, type(place[0]).__name__)]
        if count < len(named):
            return named[count]
        existing = ", ".join(type(present).__name__ for present, _ in layers)
        raise builder.CTRexPacketBuildException(-11, f"the packet has no layer '{name}'; it has {existing}")

    def field(self: Any, name: str, count: int, wanted: str) -> tuple[int, int]:
        of_name, at = layer(self, name, count)
        fields = {known.name: (known, offset) for known, offset in _fields(of_name)}
        if wanted not in fields:
            text = f"the layer '{name}' has no field '{wanted}'; it has {', '.join(fields)}"
            raise builder.CTRexPacketBuildException(-11, text)
        known, offset = fields[wanted]
        return at + offset, 0 if hasattr(known, "size") else known.sz

    utility = builder.CTRexScapyPktUtl
    utility._layer_offset, utility.get_field_offet = layer, field
    utility.layer_offset = lambda self, name, cnt=0: layer(self, name, cnt)[1]


def _layers(packet: Any) -> Iterator[tuple[Any, int]]:
    """Yield each layer of *packet* as it is sent, and its offset."""
    from scapy.packet import NoPayload

    layer, at = packet if packet.explicit else next(iter(packet)), 0
    while not isinstance(layer, NoPayload):
        yield layer, at
        at += len(layer.self_build())
        layer = layer.payload


def _fields(layer: Any) -> Iterator[tuple[Any, int]]:
    """Yield each field of *layer* and its offset; for bit fields the offset of their byte."""
    written: Any = b""
    for field in layer.fields_desc:
        # bits of an incomplete byte are separate from the bytes
        yield field, len(written[0]) if isinstance(written, tuple) else len(written)
        written = field.addfield(layer, written, layer.getfieldval(field.name))


# -- the profile -------------------------------------------------------------------------------------------------------


def _direction(path: Path, number: int, tunables: list[str], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the streams of the direction *number* of the profile, as ``add_stream`` takes them, or its error."""
    printed, line = io.StringIO(), None
    try:
        with contextlib.redirect_stderr(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            streams = _streams(path, number, tunables, named)
            data = [{**stream.to_json(), "name": stream.name, "next": stream.next} for stream in streams]
            return {"streams": json.loads(json.dumps(data))}
    except Refusal as error:
        problem = str(error)
    except BaseException as error:  # a user's code may raise anything
        kind = type(error).__name__
        problem = f"fails with {kind}: {plain_message(error).removeprefix(f'{kind}: ')[:300]}"
        if isinstance(error, SystemExit):  # argparse has printed what is wrong with the tunables
            said = plain_message(printed.getvalue())[-300:]
            problem = f"ends itself (exit {error.code})" + (f": {said}" if said else "")
        lines = [row.lineno for row in traceback.extract_tb(error.__traceback__) if Path(row.filename) == path]
        line = lines[-1] if lines else getattr(error, "lineno", None)
    return {"error": {"message": problem, "line": line}}


def _streams(path: Path, direction: int, tunables: list[str], named: Mapping[str, Any]) -> list[Any]:
    if path.suffix != ".py":  # YAML, of which JSON is a part
        if tunables:
            raise Refusal("file", "takes no tunables; expected a profile that is a '.py' file")
        return list(importlib.import_module("trex_stl_lib.api").STLProfile.load_yaml(str(path)).get_streams())
    module = sys.modules[path.stem] = ModuleType(path.stem)
    module.__file__ = str(path)
    SourceFileLoader(path.stem, str(path)).exec_module(module)
    get_streams = module.register().get_streams
    arguments = {**named, "direction": direction, "port_id": direction, "tunables": tunables}
    takes = inspect.signature(get_streams).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values()):
        unknown = [name for name in named or tunables if name not in takes]
        if unknown and "tunables" not in takes:
            known = ", ".join(name for name in takes if name not in ("direction", "port_id")) or "none"
            raise Refusal("file", f"has no tunable '{unknown[0]}'; it has {known}")
        arguments = {name: value for name, value in arguments.items() if name in takes}
    profile = get_streams(**arguments)
    streams = profile.get_streams() if hasattr(profile, "get_streams") else profile or []
    return list(streams) if isinstance(streams, list | tuple) else [streams]


if __name__ == "__main__":
    main()
