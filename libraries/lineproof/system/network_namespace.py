"""Network namespaces: making one that ends with its owner, entering one, running a command inside one.

A namespace is told by a path below ``/proc``, of the process that holds it. It has no name, so nothing has to be
remembered to remove it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from ..errors import TestbedError
from . import children

T = TypeVar("T")

LIMIT = 10.0
"""Seconds for a namespace to be made, for a change in it, and for its end."""

_CLONE_NEWNET = 0x40000000  # linux/sched.h

_HOLD = r"""
set -e
# /sys shows the interfaces of the namespace that mounted it
mount -t sysfs sysfs /sys
# without IPv6 the kernel sends no router solicitations or listener reports among the frames of the test; the router's
# interfaces get it back when the router is set up for it
for scope in all default; do
  setting=/proc/sys/net/ipv6/conf/$scope/disable_ipv6
  [ ! -e "$setting" ] || echo 1 >"$setting"
done
# a router has to be able to forward: some containers have a /proc/sys that is read-only
: >>/proc/sys/net/ipv4/ip_forward
# /proc is still the machine's, so this is the number that others know the holder by
read -r pid _ </proc/self/stat
echo "$pid"
exec >/dev/null 2>&1
cat
# programs may first remove what they made
left=50
kill -s TERM -- -1 || left=0
while [ "$left" -gt 0 ] && kill -s 0 -- -1; do left=$((left - 1)); sleep 0.1; done
kill -s KILL -- -1 || :
rm -rf -- "$1"
"""
"""The holder, process 1 of a PID namespace: the kernel kills all others there when it ends. Its argument: a folder."""


class Namespace:
    """A network namespace that lasts until :meth:`close` or the end of this process, even by SIGKILL.

    ``path``: of the namespace; it has a mount namespace with a /sys of its own, and a PID namespace for the programs
    that have to end with it.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Make one, without IPv6, with whose end *folder* is removed. Raises TestbedError."""
        # --kill-child: the holder ends as well if only this outer process is killed
        kinds = ("--net", "--mount", "--propagation=slave", "--pid", "--fork", "--kill-child")
        argv = (program("unshare"), *kinds, "--", "/bin/sh", "-c", _HOLD, "lineproof-namespace", str(folder or ""))
        self._holder = children.Child(argv, stderr=children.STDOUT, env=children.environment({"LC_ALL": "C"}))
        self._descriptor = -1
        try:
            said = self._holder.line(LIMIT).decode()
        except (TimeoutError, EOFError) as error:
            said = "no reason given" if isinstance(error, EOFError) else f"nothing happened within {LIMIT:g} s"
        if not said.isdigit():
            self.close()
            raise TestbedError(
                f"no network namespace can be made here ({said}); it needs root, and in a container CAP_NET_ADMIN and"
                " CAP_SYS_ADMIN, for example by 'docker run --privileged'"
            )
        # the folder of this process alone: its number may be another's later
        self._descriptor = os.open(f"/proc/{said}", os.O_PATH | os.O_CLOEXEC)
        self.path = f"/proc/{os.getpid()}/fd/{self._descriptor}/ns/net"

    def close(self) -> None:
        """End the namespace, with every process of its PID namespace. May be repeated."""
        self._holder.end(LIMIT)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def inside(namespace: str | None, *, bound: bool = False) -> tuple[str, ...]:
    """Return the words before a command that run it in *namespace*, a path, or here. Raises TestbedError.

    It sees the machine's own processes. *bound*: it ends with the namespace, at the latest; the process that is
    started waits for it and does not hand on signals.
    """
    if not namespace:
        return ()
    folder = namespace.removesuffix("/net")
    pids = (f"--pid={folder}/pid",) if bound else ()
    return (program("nsenter"), f"--net={namespace}", f"--mount={folder}/mnt", *pids, "--")


_KEEP = r"""
exec 3<&0 4<"$1"
shift
end() {
  trap '' TERM HUP INT
  kill -s KILL "$program"
  # what it has started may outlive it: all of it is in the namespace
  for process in /proc/[0-9]*; do
    if [ "$process/ns/net" -ef /proc/self/fd/4 ]; then kill -s KILL "${process#/proc/}"; fi
  done
  exit 0
}
trap end TERM HUP INT
setpriv --pdeathsig KILL -- "$@" </dev/null 3<&- 4<&- &
program=$!
( cat >/dev/null; kill -s TERM "$$" ) <&3 3<&- 4<&- &
watch=$!
exec 3<&- </dev/null
wait "$program"
status=$?
kill -s KILL "$watch"
exit "$status"
"""


def kept_within(namespace: str, argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command that runs *argv* until its input ends, then kills it and all in *namespace*.

    That includes the namespace's holder. *namespace* "": nothing but the program that *argv* becomes.
    """
    return ("/bin/sh", "-c", _KEEP, "lineproof-kept", namespace or "/dev/null", *argv)


def configure(namespace: str | None, *commands: str) -> None:
    """Do *commands* of ip(8), ``link set dev lo up`` for instance, in *namespace*. Raises TestbedError."""
    try:
        done = children.run((*inside(namespace), program("ip"), "-batch", "-"), LIMIT, text="\n".join(commands))
    except children.TimeoutExpired:
        raise TestbedError(f"'ip {commands[0]}' did not end within {LIMIT:g} s") from None
    if done.returncode:
        reason = " / ".join(done.stderr.split("\n")[:2])
        raise TestbedError(f"one of {len(commands)} commands from 'ip {commands[0]}' on fails here: {reason}")


def program(name: str) -> str:
    """Return the path of a program of :data:`PACKAGES`. Raises TestbedError."""
    if path := children.find_program(name):
        return path
    raise TestbedError(f"the program '{name}' is missing; install the package {PACKAGES[name]}")


PACKAGES = {"unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2", "sshd": "openssh-server"}
"""Debian's package of each program that a testbed of namespaces needs."""


def enter_namespace(netns: str | None) -> None:
    """Move the calling thread to the namespace of path *netns* (None: stay). Raises TestbedError."""
    if netns is None:
        return
    try:
        handle = os.open(netns, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise TestbedError(f"there is no network namespace at '{netns}' ({error.strerror})") from error
    # os.setns exists only since Python 3.12
    refused = ctypes.CDLL(None, use_errno=True).setns(handle, _CLONE_NEWNET)
    os.close(handle)
    if refused:
        reason = os.strerror(ctypes.get_errno())
        raise TestbedError(f"may not enter the network namespace '{netns}': {reason}; run as root")


def run_in_namespace(netns: str | None, work: Callable[[], T]) -> T:
    """Return the result of *work*, called in a thread inside *netns*, to which its sockets belong.

    Called here where *netns* is None or "".
    """
    if not netns:
        return work()

    def inside_namespace() -> T:
        enter_namespace(netns)
        return work()

    with ThreadPoolExecutor(1) as other:
        return other.submit(inside_namespace).result()
