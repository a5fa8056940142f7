"""The shell script that holds a TRex server: here, in a network namespace, or at the far end of an SSH connection.

It ends with its standard input. So the server ends with the process that started it, also if that was killed or its
connection was lost. POSIX sh, with setsid(1) and mktemp(1) of any Linux.

Arguments: the installation's folder, ``linux`` or ``pci``, seconds for an orderly end, the DPDK prefix whose files to
remove ("": none), then TRex's own. Standard input: the configuration and a line of one full stop; then nothing.
"""

from __future__ import annotations

import re

NO_FOLDER, NO_PROGRAM, NO_ROOT, NO_TEMPORARY = 90, 91, 92, 93
"""Exit statuses of the script itself; its last line gives the reason."""

END_OF_CONFIG = ".\n"

SCRIPT = r"""
umask 077
fail() { status=$1; shift; printf 'lineproof: %s\n' "$*"; exit "$status"; }
home=$1 kind=$2 grace=$3 prefix=$4
shift 4
[ "$(id -u)" = 0 ] || fail 92 "TRex must run as root, and this is user $(id -un)"
cd -- "$home" 2>/dev/null || fail 90 "there is no folder '$home' here"
program=./t-rex-64
# the outer program prepares cards and memory, which Linux's own interfaces need not
if [ "$kind" = linux ] && [ -x ./_t-rex-64 ]; then program=./_t-rex-64; fi
[ -f "$program" ] && [ -x "$program" ] || fail 91 "there is no TRex in '$home': the program t-rex-64 is missing"
tmp=${TMPDIR:-/tmp}
folder=$(mktemp -d "$tmp/lineproof-trex.XXXXXX") || fail 93 "no temporary folder can be made in $tmp"
clear() {
  rm -rf -- "$folder"
  [ -z "$prefix" ] || rm -rf -- "/var/run/dpdk/$prefix"
}
config=$folder/trex_cfg.yaml
while IFS= read -r line && [ "$line" != . ]; do printf '%s\n' "$line"; done > "$config"
[ -s "$config" ] && set -- "$@" --cfg "$config"
LD_LIBRARY_PATH=$PWD:$PWD/so/$(uname -m)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec 3<&0
# a group of its own, so that TRex's outer program and its inner one are asked to end together
setsid "$program" "$@" </dev/null 3<&- &
trex=$!
# not by /proc, which may be that of another PID namespace: once 'sleep' has ended, the shell knows TRex's end as well
alive() { kill -s 0 "$trex" 2>/dev/null; }
stop() {
  trap '' TERM HUP INT
  kill -s INT -- "-$trex" 2>/dev/null || kill -s INT "$trex" 2>/dev/null
  left=$((grace * 5))
  while alive && [ "$left" -gt 0 ]; do left=$((left - 1)); sleep 0.2; done
  if alive; then printf 'lineproof: TRex had to be killed, it did not end within %s s\n' "$grace"; fi
  kill -s KILL -- "-$trex" 2>/dev/null
  wait "$trex" 2>/dev/null
  clear
  exit 0
}
trap stop TERM HUP INT
( while read -r _; do :; done; kill -s TERM "$$" ) <&3 3<&- &
watch=$!
exec 3<&- </dev/null
wait "$trex"
status=$?
trap '' TERM HUP INT
kill -s TERM "$watch" 2>/dev/null
kill -s KILL -- "-$trex" 2>/dev/null
clear
exit "$status"
"""

_EXTRA = re.compile(r"[A-Za-z0-9_.,:/=+@%-]{1,200}")

RESERVED_ARGUMENTS = frozenset(
    {"-i", "-f", "-c", "-d", "-m", "-l", "-h", "-?", "--help", "--stl", "--astf"}
    | {"--ut", "--iom", "--scapy-server", "--no-scapy-server", "--no-termio", "--no-key", "--bird-server", "--emu"}
    | {"--dump-interfaces", "--close-at-end", "--client_cfg", "--client-cfg", "--rpc-logfile", "--limit-ports"}
)
"""Arguments of TRex that are set here, belong to its other modes, or start programs that outlive it."""


def extra_problem(argument: str) -> str:
    """Return what is wrong with an argument of the testbed file's ``extra``, in words; "" if nothing is."""
    if not _EXTRA.fullmatch(argument):
        return "there is one that is no argument of TRex's; expected letters, digits and any of _ . , : / = + @ % -"
    if argument.split("=")[0] in RESERVED_ARGUMENTS:
        return f"'{argument.split('=')[0]}' is set by Lineproof, or cannot be used with it; expected to leave it out"
    return ""


def trex_arguments(cores: int | None, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return TRex's own arguments: interactive, stateless, fine latency, quiet, no programs that would outlive it."""
    threads = ("-c", str(cores)) if cores else ()
    return ("-i", "--stl", "--hdrh", "--no-scapy-server", "--no-termio", "--iom", "0", *threads, *extra)


def wrapper_command(
    home: str, arguments: tuple[str, ...], *, linux: bool, grace: int, prefix: str = "", sudo: bool = False
) -> tuple[str, ...]:
    """The argv list of the script; no shell splits its words again."""
    root = ("sudo", "-n", "--") if sudo else ()
    script = ("/bin/sh", "-c", SCRIPT, "lineproof-trex", home, "linux" if linux else "pci", str(grace), prefix)
    return (*root, *script, *arguments)
