"""Loads profiles in TRex's format. A ``.py`` file is a program: it runs in its own process, with a time limit."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...config import parse_yaml
from ...core.traffic.captures import first_frame
from ...core.traffic.profile_schema import TrexFile
from ...core.traffic.trex_profile import ProfileSource, TrexProfile, read_trex_profile
from ...errors import ConfigError, TestbedError
from ...files import read_file
from ...json_text import JsonError, parse_json
from ...system import children
from ...visible import shortened
from .client_choice import FROM_SERVER, HOME_VARIABLE, PYPI, client_folder, named_client
from .client_fetch import latest_copy

LARGEST_PROFILE = 2 << 20
"""Bytes of a profile in TRex's format."""

_NEEDS_NEWER_CLIENT = re.compile(
    r"cannot import name|unexpected keyword argument|is not defined|has no attribute|No module named 'trex|invalid type"
)
"""Errors of a profile that needs a newer client than trex-stl-lib 0.3."""

LIMIT = 60.0
"""Seconds for a client's library, on a slow and busy machine, and the streams of both directions of a profile."""


class TrexProfileLoader:
    """Loads each file once, and again only if it or its tunables change."""

    def __init__(self, client: str = "", environment: Mapping[str, str] | None = None) -> None:
        """*client*: as the testbed names it."""
        self._client = client
        self._environment = os.environ if environment is None else environment
        self._loaded: dict[tuple[Path, str, str, str], TrexProfile] = {}

    def __call__(self, path: Path, entry: TrexFile) -> TrexProfile:
        """The streams of *path* with the tunables of *entry*. Raises ConfigError, or TestbedError without a library."""
        path = Path(os.path.normpath(path.absolute()))
        content = read_file(path, LARGEST_PROFILE)
        digest = hashlib.sha256(content).hexdigest()
        folder = self._folder() if path.suffix == ".py" else None
        settings = json.dumps([entry.words, entry.named, entry.mac_dst])
        key = path, digest, settings, str(folder or "")
        if key not in self._loaded:
            if path.suffix == ".py":
                answer = run_profile(path, entry, folder, self._environment)
            else:
                answer = _read_data_file(path, content, entry)
            source = ProfileSource(path, digest, " ".join(entry.words), str(answer.get("client", "")), entry.mac_dst)
            self._loaded[key] = read_trex_profile(answer, source)
        return self._loaded[key]

    def _folder(self) -> Path | None:
        """The client that loads profiles: the testbed's, TREX_HOME's, the latest copy of a server's; None: PyPI's."""
        if self._client not in ("", PYPI, FROM_SERVER):
            return named_client(self._client)
        home = self._environment.get(HOME_VARIABLE, "")
        return Path(home) if home and client_folder(Path(home)) is not None else latest_copy()


def run_profile(path: Path, entry: TrexFile, folder: Path | None, environment: Mapping[str, str]) -> dict[str, Any]:
    """The answer of :mod:`.client.profile_program` for the profile *path*. Raises as :class:`TrexProfileLoader`."""
    request = {"file": str(path), "tunables": entry.words, "named": entry.named}
    answer = ask_profile(request, folder, path, environment)
    if "error" in answer:
        problem, line = answer["error"]["message"], answer["error"]["line"]
        if answer["error"]["kind"] == "install":
            raise TestbedError(
                f"'{path.name}' cannot be loaded: {problem}; expected trex-stl-lib 0.3 and what it"
                " requires, which every client here needs: pip install trex-stl-lib==0.3"
            )
        older = folder is None and _NEEDS_NEWER_CLIENT.search(problem)
        hint = (
            f" (loaded with trex-stl-lib 0.3 of 2019; a newer client is used where {HOME_VARIABLE} names a TRex"
            " installation, or 'client' in the testbed file)"
        )
        raise ConfigError(problem + (hint if older else ""), path, line)
    return answer


def _read_data_file(path: Path, content: bytes, entry: TrexFile) -> dict[str, Any]:
    if entry.tunables:
        raise ConfigError("takes no tunables; expected a profile that is a '.py' file", path)
    try:
        found = read_streams(path, content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8 text (byte {error.start})", path) from None
    return {"client": "", "directions": [{"streams": found}, {"streams": []}]}


MODULE = "lineproof.generators.trex.client.profile_program"

# their threads would take the memory that a profile may have
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}


def ask_profile(
    request: Mapping[str, Any], client: Path | None, path: Path, environment: Mapping[str, str]
) -> dict[str, Any]:
    """The answer to *request* (:mod:`.client.profile_program`) about *path*, loaded with the library in *client*.

    The profile's process gets those variables of *environment* that hold no secret. Raises ConfigError without answer.
    """
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as log:
        process = children.start(
            children.python(MODULE, json.dumps(request), *([] if client is None else [str(client.absolute())])),
            stdin=children.DEVNULL,
            stdout=answer,
            stderr=log,
            env=children.environment(_ONE_THREAD, given=environment),
            cwd=path.parent,
            start_new_session=True,
        )
        try:
            status = process.wait(LIMIT)
        except children.TimeoutExpired:
            raise ConfigError(f"did not end within {LIMIT:g} s, and its process was ended", path) from None
        finally:
            with contextlib.suppress(ProcessLookupError):  # what the profile started, too
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        texts = []
        for file in (answer, log):
            file.seek(0)
            texts.append(file.read())
    with contextlib.suppress(ValueError):
        found: dict[str, Any] = parse_json(texts[0], len(texts[0]), strict=False, own=True)
        return found
    last = " / ".join(" ".join(line.split()) for line in texts[1].decode(errors="replace").strip().splitlines()[-2:])
    words = f"; its last output: {last[-300:]}" if last else ""
    raise ConfigError(f"ended the process that loads it (status {status}){words}", path)


RATES = ("pps", "bps_L1", "bps_L2", "percentage")


def read_streams(path: Path, text: str) -> list[dict[str, Any]]:
    """The streams of *text*, the content of the file *path*. Raises ConfigError.

    There are two shapes: that of ``add_stream``, and that of TRex's console, which names a capture as ``pcap`` relative
    to the file and its rate as one key (``pps: 100``). Neither has directions.
    """
    try:
        data = parse_json(text) if path.suffix == ".json" else parse_yaml(text, path)[0]
    except JsonError as error:
        raise ConfigError(f"cannot be read: {error}", path, error.line) from None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise ConfigError("is no list of streams", path, 1)
    found = []
    for number, item in enumerate(data, 1):
        try:
            found.append(_stream(number, item, path))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(f"stream {number} is not a stream that TRex accepts ({shortened(error)})", path) from None
    return found


def _stream(number: int, item: Mapping[str, Any], path: Path) -> dict[str, Any]:
    inner = item.get("stream", item)
    packet, mode = (inner.get(key) if isinstance(inner, dict) else None for key in ("packet", "mode"))
    if not isinstance(packet, dict) or not isinstance(mode, dict):
        raise ConfigError(f"stream {number} has no 'packet' and 'mode'", path)
    defaults = {"action_count": 0, "enabled": True, "self_start": True, "isg": 0.0}
    counted = inner.get("flow_stats")
    is_counted = isinstance(counted, dict) and counted
    machine = inner.get("vm") or {}
    return {
        "flags": inner.get("flags", int(bool(inner.get("mac_src_override_by_pkt", 0)))),
        **{key: inner.get(key, value) for key, value in defaults.items()},
        "mode": _mode(number, mode, path),
        "packet": {"binary": _packet_base64(number, packet, path), "meta": ""},
        "vm": {**machine, "instructions": list(machine.get("instructions") or ())},
        "flow_stats": {"rule_type": "stats", **counted} if is_counted else {"enabled": False},
        "name": item.get("name"),
        "next": item.get("next"),
    }


def _mode(number: int, mode: Mapping[str, Any], path: Path) -> dict[str, Any]:
    if isinstance(mode.get("rate"), dict):
        return dict(mode)
    rates = [name for name in RATES if name in mode]
    if len(rates) != 1:
        raise ConfigError(f"stream {number}: expected one of {', '.join(RATES)} in its 'mode'", path)
    defaults = {"total_pkts": 1, "pkts_per_burst": 1, "ibg": 0.0, "count": 1, "type": "continuous"}
    return {**defaults, **mode, "rate": {"type": rates[0], "value": mode[rates[0]]}}


def _packet_base64(number: int, packet: Mapping[str, Any], path: Path) -> str:
    if packet.get("binary"):
        return str(packet["binary"])
    if packet.get("pcap"):
        return base64.b64encode(first_frame(path.parent / str(packet["pcap"]))).decode()
    raise ConfigError(f"stream {number}: expected 'binary' or 'pcap' in its 'packet'", path)
