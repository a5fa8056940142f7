"""A user's profile takes a bounded time, memory and output, whatever it does, and leaves nothing running."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lineproof.errors import ConfigError
from lineproof.generators.trex import profile_process
from lineproof.system.children import environment
from support.trex_profile_support import Own, ours

pytestmark = pytest.mark.slow

SPIN = "while True: pass"

# a process that left: a session of its own, no parent here, no environment, deaf
ESCAPE = """\
import signal, subprocess
if not os.fork():
    os.setsid()
    if not os.fork():
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        os.execve('/bin/sh', ['sh', '-c', 'while :; do sleep 0.1; done; : {mark}'], {kept})
    os._exit(0)
os.wait()
"""


def escape(mark: Path, kept: str = "{}") -> str:
    return ESCAPE.format(mark=mark, kept=kept)


def left(mark: Path) -> list[str]:
    """The processes with *mark* in their command line, but for this one, once there was time for them to end."""
    for _ in range(100):
        found = []
        for process in psutil.process_iter():
            try:
                words = " ".join(process.cmdline())
            except psutil.Error:
                continue
            if str(mark) in words and "sleep 0.1" in words:
                found.append(words)
        if not found:
            break
        time.sleep(0.02)
    return found


def refused(own: Own, body: str, limit: float = 0.5) -> tuple[str, float]:
    """The error of a profile, and how long it took."""
    catalogue = own.read(ours(body, head=f"import os, time\n{HEAD}"), limit=limit)
    began = time.monotonic()
    with pytest.raises(ConfigError) as caught:
        catalogue.profile(["mine"])
    return str(caught.value), time.monotonic() - began


HEAD = "from trex_stl_lib.api import *\n"


@pytest.fixture
def warm(own: Own) -> Own:
    """With the server's libraries imported: what is measured after it is the profile."""
    own.profile(ours("return stream(64, direction)"))
    return own


@pytest.mark.parametrize(
    "body",
    [
        "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))",
        "import signal; [signal.signal(n, signal.SIG_IGN) for n in range(1, 32) if n not in (9, 19)]",
        "import signal; signal.setitimer(signal.ITIMER_REAL, 0)",
        "import signal; os.kill(os.getpid(), signal.SIGSTOP)",
        "for fd in range(3, 30):\n    try: os.write(fd, b'\\n{\"begin\": 1}\\n' * 9)\n    except OSError: pass",
    ],
)
def test_the_time_is_limited_from_outside(warm: Own, body: str) -> None:
    said, took = refused(warm, f"{body}\nimport signal; signal.setitimer(signal.ITIMER_REAL, 0)\n{SPIN}", 1.0)
    assert "did not end within 1 s" in said
    assert took < 30  # without a limit it runs for ever; a busy machine takes its time to fork and to end it


def test_output_without_end_is_not_kept(warm: Own) -> None:
    before = psutil.Process().memory_info().rss
    said, _ = refused(warm, "while True: os.write(1, b'x' * 65536)")
    assert "did not end within 0.5 s" in said
    assert psutil.Process().memory_info().rss < before + (50 << 20)


def test_an_answer_without_end_is_not_kept(warm: Own) -> None:
    body = "fds = os.listdir('/proc/self/fd')\nwhile True:\n    for fd in fds:\n"
    body += "        try: int(fd) > 2 and os.write(int(fd), b'x' * 65536)\n        except OSError: pass"
    before = psutil.Process().memory_info().rss
    said, _ = refused(warm, body, 5.0)
    assert "answers more than 64 MiB" in said
    assert psutil.Process().memory_info().rss < before + (200 << 20)


@pytest.mark.parametrize("end", ["return stream(64, direction)", SPIN, "os.abort()", "os._exit(0)"])
def test_nothing_is_left_running(warm: Own, tmp_path: Path, end: str) -> None:
    mark = tmp_path / "escaped"
    catalogue = warm.read(ours(f"{escape(mark)}\n{end}", head=f"import os\n{HEAD}" + BUILD), limit=1.0)
    if end.startswith("return"):
        assert catalogue.profile(["mine"]).mean_size == 64
    else:
        with pytest.raises(ConfigError):
            catalogue.profile(["mine"])
    assert left(mark) == []


@pytest.mark.parametrize("signal", ["SIGKILL", "SIGSTOP", "SIGTERM"])
def test_a_profile_that_ends_its_guard_is_ended_too(
    warm: Own, tmp_path: Path, signal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile_process, "END_LIMIT", 1.0)
    mark = tmp_path / "escaped"
    # in a namespace of its own the profile has no such parent: the guard is the one that started it
    victim = "[int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('PPid')][0]"
    body = f"{escape(mark, 'dict(os.environ)')}\nimport signal\n"
    body += f"try: os.kill({victim}, signal.{signal})\nexcept OSError: pass\n{SPIN}"
    refused(warm, body)
    assert left(mark) == []


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("bytearray(8 << 30)", "fails with MemoryError"),
        ("with open('big', 'wb') as file:\n    file.seek(1 << 30)\n    file.write(b'x')", "File too large"),
        ("files = [open('/dev/null') for _ in range(1000)]", "Too many open files"),
    ],
)
def test_what_it_takes_is_limited(warm: Own, body: str, says: str) -> None:
    assert says in refused(warm, body, 3.0)[0]


def test_it_gains_no_rights_and_knows_no_secret(warm: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    body = "assert 'NoNewPrivs:\\t1' in open('/proc/self/status').read()\n"
    body += "raise Exception(' '.join(sorted(os.environ)))"
    said = refused(warm, body, 3.0)[0]
    assert "LINEPROOF_PROFILE" in said and "SECRET" not in said


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a PID namespace needs root")

BUILD = """
def stream(size=64, direction=0):
    ends = ["16.0.0.1", "48.0.0.1"]
    head = Ether() / IP(src=ends[direction], dst=ends[1 - direction]) / UDP(sport=1025, dport=12)
    packet = STLPktBuilder(pkt=head / (b"x" * (size - 4 - len(head))))
    return STLStream(packet=packet, mode=STLTXCont(pps=1))
"""

GUARDED = """\
import json, os, sys, time
from lineproof.generators.trex.client import profile_guard
if sys.argv[1] == "shared":
    profile_guard.isolate_children = lambda: False
def work():
    exec(sys.argv[2])
    os._exit(7)
profile_guard.run_guarded(work)
"""


@pytest.mark.parametrize("kind", ["shared", pytest.param("own", marks=needs_root)])
@pytest.mark.parametrize("way", ["ends", "input ends", "guard is killed"])
def test_the_guard_ends_all_with_a_namespace_and_without(kind: str, way: str, tmp_path: Path) -> None:
    mark = tmp_path / "escaped"
    code = f"{escape(mark, 'dict(os.environ)')}\nprint('here', flush=True)\n"
    guard = subprocess.Popen(
        [sys.executable, "-c", GUARDED, kind, code + ("" if way == "ends" else "time.sleep(60)")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment({profile_process.MARK: str(mark)}),
    )
    assert guard.stdin and guard.stdout
    with guard.stdin, guard.stdout:
        assert guard.stdout.readline() == b"here\n"
        if way == "guard is killed":
            guard.kill()
            guard.wait(20)
            if kind == "shared":
                profile_process._kill_marked(str(mark))
        else:
            if way == "input ends":
                guard.stdin.close()
            assert json.loads(guard.stdout.read())["ended"] == (7 if way == "ends" else None)
            assert guard.wait(20) == 0
    assert left(mark) == []
