"""Runs a user's profile in a process of its own, with a limit of time, and takes its answer."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...json_text import parse_json
from ...system import children

MODULE = "lineproof.generators.trex.client.profile_program"

IMPORT_LIMIT = 60.0
"""Seconds for the process to import a client's library, on a slow and busy machine."""

GRACE = 5.0
"""Seconds for each direction, after its limit, until a profile that cannot be interrupted is killed."""

# their threads would take the memory that a profile may have
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}


class ProfileFailed(Exception):
    """There is no answer; the message says why, as what the profile did."""


def ask_profile(
    request: Mapping[str, Any], client: Path | None, folder: Path, environment: Mapping[str, str]
) -> dict[str, Any]:
    """The answer to *request* (:mod:`.client.profile_program`), loaded with the library in *client*, run in *folder*.

    The profile's process gets those variables of *environment* that hold no secret. Raises ProfileFailed.
    """
    limit = IMPORT_LIMIT + 2 * (float(request["limit"]) + GRACE)
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as log:
        process = children.start(
            children.python(MODULE, json.dumps(request), *([] if client is None else [str(client.absolute())])),
            stdin=children.DEVNULL,
            stdout=answer,
            stderr=log,
            env=children.environment(_ONE_THREAD, given=environment),
            cwd=folder,
            start_new_session=True,
        )
        try:
            status = process.wait(limit)
        except children.TimeoutExpired:
            raise ProfileFailed(f"did not end within {limit:g} s, and its process was ended") from None
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
    raise ProfileFailed(f"ended the process that loads it (status {status}){words}")
