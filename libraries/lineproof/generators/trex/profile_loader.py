"""Loads profiles in TRex's format. A file is read by a TRex client in a process of its own, with a time limit."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...config import parse_yaml
from ...core.traffic.profile_schema import TrexFile
from ...core.traffic.trex_profile import ProfileSource, TrexProfile, read_trex_profile
from ...errors import ConfigError, TestbedError
from ...files import read_file
from ...system import children
from .clients import FROM_SERVER, HOME_VARIABLE, PYPI, home_client, latest_copy, named_client

_NEEDS_NEWER_CLIENT = re.compile(
    r"cannot import name|unexpected keyword argument|is not defined|has no attribute|No module named 'trex|invalid type"
    r"|'rate' must contain"
)
"""Errors of a profile that needs a newer client than trex-stl-lib 0.3."""

LIMIT = 60.0
"""Seconds for a client's library, on a slow and busy machine, and the streams of both directions of a profile."""

MODULE = "lineproof.generators.trex.client.profile_program"

# their threads would take the memory that a profile may have
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}


class TrexProfileLoader:
    """Loads each file once, and again only if it or its tunables change."""

    def __init__(self, client: str = "") -> None:
        """Load profiles with the library of *client*, as the testbed names it."""
        self._client = client
        self._loaded: dict[tuple[Path, str, str, str], TrexProfile] = {}

    def __call__(self, path: Path, entry: TrexFile) -> TrexProfile:
        """Return the streams of *path* with *entry*'s tunables. Raises ConfigError; TestbedError without a library."""
        path = Path(os.path.normpath(path.absolute()))
        content = read_file(path, 2 << 20)
        digest = hashlib.sha256(content).hexdigest()
        if path.suffix != ".py" and not isinstance(parse_yaml(content.decode(errors="replace"), path)[0], list):
            raise ConfigError("is no list of streams", path, 1)
        folder = self._folder()
        settings = json.dumps([entry.words, entry.named, entry.mac_dst])
        key = path, digest, settings, str(folder or "")
        if key not in self._loaded:
            answer = run_profile(path, entry, folder)
            source = ProfileSource(path, digest, " ".join(entry.words), answer["client"], entry.mac_dst)
            self._loaded[key] = read_trex_profile(answer, source)
        return self._loaded[key]

    def _folder(self) -> Path | None:
        """Return the client: the testbed's, TREX_HOME's, or the latest copy of a server's; None: PyPI's."""
        if self._client not in ("", PYPI, FROM_SERVER):
            return named_client(self._client)
        return home_client() or latest_copy()


def run_profile(path: Path, entry: TrexFile, folder: Path | None) -> Mapping[str, Any]:
    """Return the answer of :mod:`.client.profile_program` for *path*. Raises as :class:`TrexProfileLoader`."""
    request = json.dumps({"file": str(path), "tunables": entry.words, "named": entry.named})
    argv = children.python(MODULE, request, *([] if folder is None else [str(folder.absolute())]))
    try:
        ran = children.run(argv, LIMIT, env=children.environment(_ONE_THREAD), cwd=path.parent)
    except children.TimeoutExpired:
        raise ConfigError(f"did not end within {LIMIT:g} s, and its process was ended", path) from None
    try:
        answer: Mapping[str, Any] = json.loads(ran.stdout)
    except ValueError:
        last = " / ".join(" ".join(line.split()) for line in ran.stderr.strip().splitlines()[-2:])
        output = f"; its last output: {last[-300:]}" if last else ""
        raise ConfigError(f"ended the process that loads it (status {ran.returncode}){output}", path) from None
    if missing := answer.get("error"):
        raise TestbedError(
            f"'{path.name}' cannot be loaded: {missing}; expected trex-stl-lib 0.3 and what it requires, which every"
            " client here needs: pip install trex-stl-lib==0.3"
        )
    if error := answer["directions"][0].get("error"):
        older = folder is None and _NEEDS_NEWER_CLIENT.search(error["message"])
        hint = (
            f" (loaded with trex-stl-lib 0.3 of 2019; a newer client is used where {HOME_VARIABLE} names a TRex"
            " installation, or 'client' in the testbed file)"
        )
        raise ConfigError(error["message"] + (hint if older else ""), path, error["line"])
    return answer
