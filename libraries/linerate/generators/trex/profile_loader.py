"""Loads profiles in TRex's format. A ``.py`` file is a program: it runs in a process of its own, with a time limit."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import ConfigError, TestbedError
from ...traffic.files import TrexFile
from ...traffic.trex_profile import ProfileSource, TrexProfile
from ...traffic.trex_streams import read_program
from . import client_copies as copies
from .client_choice import HOME
from .client_folders import interactive
from .client_process import LIBRARIES
from .stream_files import read_streams

MODULE = "linerate.generators.trex.client.profile_program"

IMPORT_LIMIT = 60.0
"""Seconds for the process to import a client's library, on a slow and busy machine."""

_LACKING = re.compile(
    r"cannot import name|unexpected keyword argument|is not defined|has no attribute|No module named 'trex|invalid type"
)
"""What errors say of a profile that wants a newer client than trex-stl-lib 0.3."""

LIMIT = 20.0
"""Seconds that a profile may take for the streams of one direction."""


class TrexProfileLoader:
    """Loads each file once, as long as neither it nor its tunables change."""

    def __init__(self, client: str = "", limit: float = LIMIT, environment: Mapping[str, str] | None = None) -> None:
        """*client*: as the testbed names it. *limit*: s for each direction."""
        self._client, self._limit = client, limit
        self._environment = os.environ if environment is None else environment
        self._known: dict[tuple[Path, str, str, str], TrexProfile] = {}

    def __call__(self, path: Path, entry: TrexFile) -> TrexProfile:
        """The streams of *path* with the tunables of *entry*. Raises ConfigError, and TestbedError without a library."""
        path = Path(os.path.normpath(path.absolute()))
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror}", path) from None
        digest = hashlib.sha256(content).hexdigest()
        folder = self._folder() if path.suffix == ".py" else None
        told = json.dumps([entry.words, entry.named, entry.mac_dst])
        key = path, digest, told, str(folder or "")
        if key not in self._known:
            if path.suffix == ".py":
                answer = ask(path, entry, folder, self._limit, self._environment)
            else:
                answer = _data_answer(path, content, entry)
            source = ProfileSource(path, digest, " ".join(entry.words), str(answer["client"]), entry.mac_dst)
            self._known[key] = read_program(answer, source)
        return self._known[key]

    def _folder(self) -> Path | None:
        """The client to load with: the testbed's, TREX_HOME's, the latest copy of a server's; None: PyPI's."""
        named = Path(self._client).expanduser() if self._client not in ("", "pypi", "from server") else None
        if named is not None and interactive(named) is None:
            raise TestbedError(
                f"there is no TRex client in '{named}', which the testbed file names as 'client'; expected the"
                " folder of a TRex installation, or its automation/trex_control_plane/interactive"
            )
        home = self._environment.get(HOME, "")
        if named is None and home and interactive(Path(home)) is not None:
            named = Path(home)
        return named or copies.latest()


def ask(
    path: Path, entry: TrexFile, folder: Path | None, limit: float, environment: Mapping[str, str]
) -> dict[str, Any]:
    """What :mod:`.program_child` says of the profile *path*. Raises ConfigError, and TestbedError without a library."""
    request = {
        "file": str(path),
        "client": "" if folder is None else str(folder),
        "tunables": entry.words,
        "named": entry.named,
        "limit": limit,
    }
    python = os.pathsep.join(filter(None, (str(LIBRARIES), environment.get("PYTHONPATH"))))
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", MODULE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environment, "PYTHONPATH": python},
        cwd=path.parent,
        start_new_session=True,
    )
    said = words = b""
    late = False
    try:
        said, words = process.communicate(json.dumps(request).encode(), IMPORT_LIMIT + 2.5 * limit)
    except subprocess.TimeoutExpired:
        late = True
    finally:
        with contextlib.suppress(ProcessLookupError):  # what it started goes with it
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    if late:
        raise ConfigError(f"did not end within {limit:g} s for each direction, and its process was ended", path)
    return _answer(said, words, process.returncode, path, folder)


def _answer(said: bytes, words: bytes, status: int, path: Path, folder: Path | None) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(said)
    except ValueError:
        last = " / ".join(line.strip() for line in words.decode(errors="replace").strip().splitlines()[-2:])
        told = f"; its last words: {last[-300:]}" if last else ""
        raise ConfigError(f"ended the process that loads it (status {status}){told}", path) from None
    if "error" in answer:
        error = answer["error"]
        if error["kind"] == "install":
            raise TestbedError(
                f"'{path.name}' cannot be loaded: {error['message']}; expected trex-stl-lib 0.3 and what it"
                " requires, which every client here needs: pip install trex-stl-lib==0.3"
            )
        older = folder is None and _LACKING.search(error["message"])
        hint = (
            f" (loaded with trex-stl-lib 0.3 of 2019; a newer client is used where {HOME} names a TRex installation, or"
            " 'client' in the testbed file)"
        )
        raise ConfigError(error["message"] + (hint if older else ""), path, error["line"])
    return answer


def _data_answer(path: Path, content: bytes, entry: TrexFile) -> dict[str, Any]:
    if entry.tunables:
        raise ConfigError("takes no tunables; expected a profile that is a '.py' file", path)
    try:
        found = read_streams(path, content.decode())
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8 text (byte {error.start})", path) from None
    return {"client": "", "directions": [{"streams": found}, {"streams": []}]}
