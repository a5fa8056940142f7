"""Starts the process of a user's profile, takes its answer within bounds, and leaves nothing of it running."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import signal
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from ...json_text import parse_json
from ...system import children
from ...system.descendants import environment_variable

MODULE = "lineproof.generators.trex.client.profile_program"

IMPORT_LIMIT = 60.0
"""Seconds for the process to import a client's library, on a slow and busy machine."""

MOST_GRACE = 5.0
"""Seconds after its limit, or the limit again if that is less, until a direction that does not end is ended."""

LONGEST_ANSWER = 64 << 20
"""Bytes."""

LOOK = 0.2
"""Seconds between two looks for processes that are left."""

END_LIMIT = 4.0
"""Seconds for the guard to end what a profile left."""

MARK = "LINEPROOF_PROFILE"
"""Environment variable of a profile's processes: finds them if even their guard was killed."""

_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}


class ProfileFailed(Exception):
    """There is no answer; the message says why, as what the profile did."""


def ask_profile(
    request: Mapping[str, Any], client: Path | None, folder: Path, environment: Mapping[str, str]
) -> dict[str, Any]:
    """The answer to *request* (:mod:`.client.profile_program`), loaded with the library in *client*, run in *folder*.

    The profile's process gets those variables of *environment* that hold no secret. Raises ProfileFailed.
    """
    mark = secrets.token_hex(8)
    with tempfile.TemporaryFile() as log:
        process = children.start(
            children.python(MODULE, *([] if client is None else [str(client.absolute())])),
            stdin=children.PIPE,
            stdout=children.PIPE,
            stderr=log,
            env=children.environment({MARK: mark, **_ONE_THREAD}, given=environment),
            cwd=folder,
            start_new_session=True,
        )
        try:
            answer = _converse(process, request)
        finally:
            _end(process, mark)
        if answer is None:
            log.seek(0)
            answer = {"ended": process.returncode, "output": log.read(1 << 16).decode(errors="replace")}
    if "ended" in answer:
        last = " / ".join(" ".join(line.split()) for line in str(answer["output"]).strip().splitlines()[-2:])
        words = f"; its last output: {last[-300:]}" if last else ""
        raise ProfileFailed(f"ended the process that loads it (status {answer['ended']}){words}")
    return answer


def _converse(process: children.Child[bytes], request: Mapping[str, Any]) -> dict[str, Any] | None:
    """The last line of the conversation; None if there is none. Raises ProfileFailed."""
    _, output = children.pipes(process)
    children.send_line(process, json.dumps(request))
    limit = float(request["limit"])
    until, begun, received = time.monotonic() + IMPORT_LIMIT, 0, 0
    rest: list[bytes] = []
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while True:
            left = until - time.monotonic()
            if left <= 0 or not selector.select(left):
                raise ProfileFailed(
                    f"did not end within {limit:g} s for each direction, and its process was ended"
                    if begun
                    else f"was not begun: the client's library was not imported within {IMPORT_LIMIT:g} s; try again"
                )
            chunk = os.read(output.fileno(), 1 << 16)
            if not chunk:
                return None
            received += len(chunk)
            if received > LONGEST_ANSWER:
                raise ProfileFailed(f"answers more than {LONGEST_ANSWER >> 20} MiB; expected fewer or shorter streams")
            *lines, last = chunk.split(b"\n")
            for line in lines:
                answer = _parse(b"".join([*rest, line]))
                rest = []
                if answer is not None and "begin" not in answer:
                    return answer
                if answer is not None and begun < 2:
                    begun, until = begun + 1, time.monotonic() + limit + min(limit, MOST_GRACE)
            rest.append(last)


def _parse(line: bytes) -> dict[str, Any] | None:
    """A line as an object; None where it is none: the beginning of an answer that was cut off."""
    try:
        found = parse_json(line, LONGEST_ANSWER, strict=False, own=True)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _end(process: children.Child[bytes], mark: str) -> None:
    """End the guard, which ends the profile and all that it started; by force where the guard does not."""
    for stream in children.pipes(process):
        with contextlib.suppress(OSError):
            stream.close()
    try:
        is_clean = process.wait(END_LIMIT) == 0
    except children.TimeoutExpired:
        is_clean = False
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if not is_clean:
        process.wait()
        _kill_marked(mark)


def _kill_marked(mark: str) -> None:
    """Kill all processes with *mark*, until two looks in a row find none: one that just begins shows no environment."""
    until, clean = time.monotonic() + END_LIMIT, 0
    while time.monotonic() < until and clean < 2:
        found = [item for item in psutil.process_iter() if environment_variable(item, MARK) == mark]
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(found, LOOK)
        clean = 0 if found else clean + 1
        if clean == 1:
            time.sleep(LOOK)
