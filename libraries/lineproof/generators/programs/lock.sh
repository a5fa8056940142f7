# Starts the shell of the port that the first argument names, the same name for every run that could use the port.
# The lock is in a folder in which only its owner can write: elsewhere any user could put a link where root writes.
# POSIX sh, with flock(1) of Linux or lockf(1) of FreeBSD.
if [ "$(id -u)" = 0 ]; then folder=/var/run/lineproof; else folder=$HOME/.cache/lineproof-$(uname -n); fi
mkdir -p -m 700 "$folder"
lock=$folder/port-$1
export lock
if command -v flock >/dev/null 2>&1; then flock -n -E 75 "$lock" /bin/sh -s
elif command -v lockf >/dev/null 2>&1; then lockf -k -s -t 0 "$lock" /bin/sh -s
else echo "@@refused neither flock nor lockf is there; install util-linux"; exit 76; fi
status=$?
[ "$status" != 75 ] || echo "@@held $(head -c 200 "$lock" 2>/dev/null)"
exit "$status"
