"""A user's profile has a limit of time and one of memory, and ends with the process that started it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lineproof.errors import ConfigError
from lineproof.generators.trex import profile_loader
from lineproof.system.children import environment
from support.patience import wait_until
from support.trex_profile_support import Own, ours

pytestmark = pytest.mark.slow


def refused(own: Own, body: str) -> str:
    """The error of a profile."""
    with pytest.raises(ConfigError) as caught:
        own.read(ours(f"import os, signal\n{body}")).profile(["mine"])
    return str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass",
        "while True:\n    try: time.sleep(9)\n    except: pass",
        "os.kill(os.getpid(), signal.SIGSTOP)",
    ],
)
def test_a_profile_that_cannot_be_interrupted_is_killed(own: Own, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own.profile(ours("return stream(64, direction)"))  # the server's libraries are imported after it
    monkeypatch.setattr(profile_loader, "LIMIT", 3.0)
    began = time.monotonic()
    assert "did not end within 3 s, and its process was ended" in refused(own, body)
    assert time.monotonic() - began < 30  # without a limit it runs for ever; a busy machine takes its time


@pytest.mark.parametrize("end", ["return stream(64, direction)", "raise ValueError"])
def test_what_it_started_ends_with_it(own: Own, end: str) -> None:
    began = own.folder / "began"
    start = "import os, subprocess\nif not direction: os.symlink(str(subprocess.Popen(['sleep', '60']).pid), '{}')\n"
    with contextlib.suppress(ConfigError):
        own.read(ours(start.format(began) + end)).profile(["mine"])
    wait_until(lambda: not psutil.pid_exists(int(str(began.readlink()))), limit=20)


def test_its_memory_is_limited(own: Own) -> None:
    assert "fails with MemoryError" in refused(own, "bytearray(8 << 30)")


def test_it_knows_no_secret(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    said = refused(own, "raise Exception(' '.join(sorted(os.environ)))")
    assert "PATH" in said and "SECRET" not in said


STARTER = """\
import os, pathlib, sys
from lineproof.generators.trex.profile_loader import ask_profile
request = {"file": sys.argv[1], "tunables": [], "named": {}}
ask_profile(request, None, pathlib.Path("/"), os.environ)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="prctl(2) is Linux's")
def test_it_ends_with_a_starter_that_is_killed(tmp_path: Path) -> None:
    profile, began = tmp_path / "slow.py", tmp_path / "began"
    profile.write_text(f"import os, time\nos.symlink(str(os.getpid()), '{began}')\ntime.sleep(60)\n")
    starter = subprocess.Popen([sys.executable, "-c", STARTER, str(profile)], env=environment())
    try:
        wait_until(began.is_symlink)
    finally:
        starter.kill()
        starter.wait(20)
    wait_until(lambda: not psutil.pid_exists(int(str(began.readlink()))), limit=20)
