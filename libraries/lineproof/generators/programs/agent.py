"""The shell that holds one port: here, in a network namespace, or at the far end of an SSH connection.

It reads its commands from standard input, and ends with it. So the programs that it started end with the process that
started it, also if that was killed or its connection was lost; each has a limit of its own besides. As long as it or
one of its programs runs, it holds a lock: no other run can use the same interface. POSIX sh, with mktemp(1),
timeout(1) and flock(1) of Linux or lockf(1) of FreeBSD.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import secrets
import shlex
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import paramiko

from ...errors import TestbedError
from ...system import children
from ...system.login import Login
from ...system.network_namespace import inside
from ...system.ssh import connect
from ...visible import shortened, visible

COMMAND_LIMIT = 15.0
"""Seconds for a command that only reads or sets something."""

CLOSE_LIMIT = 10.0
"""Seconds for a shell to end its programs and undo what it set: until then its port is held."""

STOPPED = 124
"""Status of a program that did not end within its limit, and ended when it was asked to (timeout(1))."""

LARGEST_OUTPUT = 4 << 20
"""Bytes that a command may write."""

ROLE = "the generator's host"

START = r"""
if [ "$(id -u)" = 0 ]; then folder=/var/run/lineproof; else folder=/tmp/lineproof-$(id -u); fi
mkdir -m 700 "$folder" 2>/dev/null
owner=
[ -L "$folder" ] || [ ! -O "$folder" ] || owner=$(ls -ld "$folder")
case $owner in
  drwx------*) ;;
  *) echo "@@refused $folder must be a folder that only $(id -un) can open (drwx------); remove it"; exit 76 ;;
esac
lock=$folder/port-$1
export lock
if command -v flock >/dev/null 2>&1; then flock -n -E 75 "$lock" /bin/sh -s
elif command -v lockf >/dev/null 2>&1; then lockf -k -s -t 0 "$lock" /bin/sh -s
else echo "@@refused neither flock nor lockf is there; install util-linux"; exit 76; fi
status=$?
[ "$status" != 75 ] || echo "@@held $(head -c 200 "$lock" 2>/dev/null)"
exit "$status"
"""
"""Its argument names the port; the same name for every run that could use it.

The lock is in a folder in which only its owner can write: elsewhere any user could put a link where root writes.
"""

PRELUDE = r"""
umask 077
exec 2>&1
LC_ALL=C
export LC_ALL
undo=:
program=
others=
folder=$(mktemp -d /tmp/lineproof-port.XXXXXX) || exit 93
# ends the program with all that it started: timeout(1) leads a group of its own on Linux
halt() {
  [ -n "$program" ] || return 0
  found=$(cat "$folder/pid" 2>/dev/null)
  if [ -n "$found" ] && [ ! -e "$folder/status" ]; then
    kill -s TERM "$found" 2>/dev/null
    kill -s KILL -- "-$found" 2>/dev/null || { sleep 0.2; kill -s KILL "$found" 2>/dev/null; }
  fi
  program=
}
stop() {
  halt
  for found in $others; do
    kill -s KILL -- "-$found" 2>/dev/null || kill -s KILL "$found" 2>/dev/null
  done
  others=
}
# also FILE LIMIT PROGRAM …: beside the program; what it writes is a file of the folder
also() {
  file=$1
  shift
  timeout -s KILL "$@" </dev/null >"$folder/$file" 2>&1 &
  others="$others $!"
}
# run LIMIT PROGRAM …: in the background; status, out and times are files of the folder
run() {
  halt
  rm -f "$folder/status" "$folder/out" "$folder/pid" "$folder/times"
  program=yes
  (
    timeout -s INT -k 3 "$@" </dev/null >"$folder/out" 2>&1 &
    echo "$!" >"$folder/pid"
    wait "$!"
    found=$?
    times >"$folder/times"
    echo "$found" >"$folder/status.new"
    mv "$folder/status.new" "$folder/status"
  ) >/dev/null 2>&1 &
  while [ ! -s "$folder/pid" ]; do sleep 0.01; done
}
end() { trap '' TERM HUP INT PIPE; stop; eval "$undo" >/dev/null 2>&1; rm -rf -- "$folder"; }
trap end EXIT
# PIPE: who reads its answers was killed
trap 'exit 1' TERM HUP INT PIPE
"""


@dataclass(frozen=True, slots=True)
class AgentPlace:
    """Where an agent runs: ``interface`` in ``namespace`` of the machine of ``login`` (None: of this one).

    ``namespace``: the name of one of ip-netns(8); a path is that of one that this process made.
    """

    interface: str
    namespace: str = ""
    login: Login | None = None
    sudo: bool = False

    @property
    def text(self) -> str:
        """For messages."""
        inside = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.interface}{inside} on {self.login.where if self.login else 'this machine'}"

    @property
    def lock(self) -> str:
        """The name that every run gives the port."""
        return re.sub(r"[^A-Za-z0-9_.-]", "_", f"{self.namespace}-{self.interface}")

    def argv(self) -> tuple[str, ...]:
        """Return what starts the agent's shell there."""
        if "/" in self.namespace:
            # nobody else knows it, so there is no lock to hold
            return (*inside(self.namespace, bound=True), "env", "lock=/dev/null", "/bin/sh")
        root = ("sudo", "-n", "--") if self.sudo else ()
        named = ("ip", "netns", "exec", self.namespace) if self.namespace else ()
        return (*root, *named, "/bin/sh", "-c", START, "lineproof-port", self.lock)


@dataclass(frozen=True, slots=True)
class Ran:
    """A program that has ended: its exit ``status``, what it wrote, and its ``cpu`` seconds (None: unknown)."""

    status: int
    output: str
    cpu: float | None


class Agent:
    """The shell of one port. Raises TestbedError if it cannot start, or another run holds the port."""

    def __init__(self, place: AgentPlace, name: str) -> None:
        self.place, self._name = place, f"{name} ({place.text})"
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._client: paramiko.SSHClient | None = None
        self._channel: Any = None
        self._process: children.Child[bytes] | None = None
        try:
            self._open()
            self.ask(PRELUDE)
            owner = f"{os.uname().nodename}, process {os.getpid()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}"
            self.ask(f'printf "%s" {shlex.quote(owner)} > "$lock"')
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        argv = self.place.argv()
        if self.place.login is None:
            try:
                self._process = children.start(
                    argv, stdin=children.PIPE, stdout=children.PIPE, stderr=children.STDOUT, start_new_session=True
                )
            except OSError as error:
                raise TestbedError(f"{self._name}: '{argv[0]}' does not start: {error.strerror}") from None
            read = self._process.stdout
        else:
            self._client = connect(self.place.login, ROLE)
            transport = self._client.get_transport()
            if transport is None:
                raise TestbedError(f"{self._name}: the SSH link is gone")
            self._channel = transport.open_session(timeout=COMMAND_LIMIT)
            self._channel.set_combine_stderr(True)
            self._channel.exec_command(shlex.join(argv))
            read = self._channel.makefile("rb")
        threading.Thread(target=self._read, args=(read,), daemon=True, name="port").start()

    def _read(self, stream: Any) -> None:
        with contextlib.suppress(OSError, ValueError, EOFError, paramiko.SSHException):
            while line := stream.readline(1 << 16):
                self._lines.put(line)
        self._lines.put(None)

    def ask(self, command: str, limit: float = COMMAND_LIMIT) -> str:
        """Return what *command* wrote, within *limit* s. Raises TestbedError, also for an exit status that is not 0."""
        return self._checked(command, self._order(command), limit)

    def _checked(self, command: str, mark: str, limit: float) -> str:
        status, output = self._answer(command, mark, limit)
        if status:
            words = shortened(visible(output).strip(), 300) or "no reason given"
            raise TestbedError(
                f"{self._name}: '{shortened(command.strip(), 120)}' failed with status {status}: {words}"
            )
        return output

    def result(self, command: str, limit: float = COMMAND_LIMIT) -> tuple[int, str]:
        """Exit status of *command*, and what it wrote. Raises TestbedError after *limit* s, and if the shell ended."""
        return self._answer(command, self._order(command), limit)

    def _order(self, command: str) -> str:
        """Have *command* run; returns the mark that ends what it writes."""
        mark = f"@@{secrets.token_hex(6)}"
        self._write(f"{command}\nprintf '\\n{mark} %s\\n' \"$?\"\n")
        return mark

    def _answer(self, command: str, mark: str, limit: float) -> tuple[int, str]:
        until, found, size = time.monotonic() + limit, list[str](), 0
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                self.close()
                raise TestbedError(
                    f"{self._name}: '{shortened(command, 120)}' did not end within {limit:g} s"
                ) from None
            if line is None:
                raise TestbedError(f"{self._name}: {self._why_ended(''.join(found))}")
            text = line.decode(errors="replace")
            if text.startswith(mark):
                return int(text.split()[1]), "".join(found).removesuffix("\n")
            found.append(text)
            size += len(line)
            if size > LARGEST_OUTPUT:
                self.close()
                raise TestbedError(
                    f"{self._name}: '{shortened(command, 120)}' wrote more than {LARGEST_OUTPUT >> 20} MB"
                )

    def _why_ended(self, output: str) -> str:
        output = visible(output).strip()
        if held := re.search(r"@@held ?(.*)", output):
            who = f" ({shortened(held[1], 200)})" if held[1] else ""
            return f"another run uses it{who}; wait for its end"
        if refused := re.search(r"@@refused (.*)", output):
            return shortened(refused[1], 200)
        return f"its shell ended: {shortened(output, 300) or 'no reason given'}"

    def _write(self, text: str) -> None:
        try:
            if self._channel is not None:
                self._channel.sendall(text.encode())
            elif self._process is not None and self._process.stdin is not None:
                self._process.stdin.write(text.encode())
                self._process.stdin.flush()
        except (OSError, ValueError, EOFError, paramiko.SSHException):
            pass  # its output ends too, and says why

    # -- a program -----------------------------------------------------------------------------------------------------

    def start(self, argv: tuple[str, ...], limit: float) -> None:
        """Start a program, which is asked to end after *limit* s and killed 3 s later. Raises TestbedError."""
        start_together([Launch(self, argv, limit)])

    def clock(self) -> tuple[float, float]:
        """The least and the most seconds by which the host's clock is ahead of this machine's. Raises TestbedError."""
        if self.place.login is None:
            return 0.0, 0.0
        before = time.time()
        told = self.ask("date +%s.%N").strip()
        after = time.time()
        if not re.fullmatch(r"[0-9]{1,12}\.[0-9]{9}", told):
            raise TestbedError(f"{self._name}: 'date +%s.%N' was not understood: {told[:100]!r}")
        return float(told) - after, float(told) - before

    def ended(self) -> Ran | None:
        """How the program ended; None while it runs. Raises TestbedError."""
        found = self.ask('if [ -e "$folder/status" ]; then cat "$folder/status" "$folder/times"; cat "$folder/out"; fi')
        if not found.strip():
            return None
        status, _, rest = found.partition("\n")
        # the shell's own times, then those of its children: user and system, as 0m0.01s
        times, output = rest.splitlines()[:2], "\n".join(rest.splitlines()[2:])
        spent = re.findall(r"([0-9]+)m([0-9]+[.,][0-9]+)s", times[1]) if len(times) == 2 else []
        cpu = sum(60 * int(minutes) + float(seconds.replace(",", ".")) for minutes, seconds in spent) if spent else None
        return Ran(int(status), output, cpu)

    def await_end(self, limit: float) -> Ran:
        """How the program ended, within *limit* s. Raises TestbedError."""
        until = time.monotonic() + limit
        while (ran := self.ended()) is None:
            if time.monotonic() > until:
                self.stop()
                raise TestbedError(f"{self._name}: the program did not end within {limit:g} s and was stopped")
            time.sleep(0.02)
        return ran

    def interrupt(self) -> None:
        """Ask the program to end, as Ctrl-C does: it reports then. Raises TestbedError."""
        self.ask('kill -s INT "$(cat "$folder/pid")" 2>/dev/null; :')

    def stop(self) -> None:
        """End the program that runs, if one does. Raises TestbedError."""
        self.ask("stop")

    def undo(self, command: str) -> None:
        """Have *command* run when the agent ends, however it ends; the last one first. Raises TestbedError."""
        self.ask(f'undo={shlex.quote(command)}"; $undo"')

    def close(self) -> None:
        """End the shell, and with it its program. May be repeated."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(OSError):
                if process.stdin:
                    process.stdin.close()
            try:
                process.wait(CLOSE_LIMIT)
            except children.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait(3)
            if process.stdout:
                process.stdout.close()
        if self._channel is not None:
            with contextlib.suppress(Exception):
                self._channel.shutdown_write()
                self._channel.status_event.wait(CLOSE_LIMIT)
                self._channel.close()
            self._channel = None
        if self._client is not None:
            with contextlib.suppress(Exception):
                self._client.close()
            self._client = None


@dataclass(frozen=True, slots=True)
class Launch:
    """A program that is ready to be started by *agent*, with the limit of :meth:`Agent.start`."""

    agent: Agent
    argv: tuple[str, ...]
    limit: float


def start_together(launches: Sequence[Launch]) -> None:
    """Start programs at the same time: all are asked before the first has answered. Raises TestbedError."""
    asked = []
    for launch in launches:
        command = f"run {launch.limit:.3f} {shlex.join(launch.argv)}"
        asked.append((launch.agent, command, launch.agent._order(command)))
    for agent, command, mark in asked:
        agent._checked(command, mark, COMMAND_LIMIT)
