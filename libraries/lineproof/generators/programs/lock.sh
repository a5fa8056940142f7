# Starts the shell of the port that the first argument names, the same name for every run that could use the port. The
# second one says whose run it is. As long as the shell or one of its programs runs, no other run gets one.
# POSIX sh, with flock(1) of Linux or lockf(1) of FreeBSD.
# In a folder in which only its owner can write: elsewhere any user could put a link where root writes.
if [ "$(id -u)" = 0 ]; then folder=/var/run/lineproof; else folder=$HOME/.cache/lineproof-$(uname -n); fi
mkdir -p -m 700 "$folder"
lock=$folder/port-$1
if command -v flock >/dev/null 2>&1; then flock -n -E 75 "$lock" /bin/sh -s "$lock" "$2"
elif command -v lockf >/dev/null 2>&1; then lockf -k -s -t 0 "$lock" /bin/sh -s "$lock" "$2"
else echo "neither flock nor lockf is there; install util-linux"; fi
[ "$?" != 75 ] || echo "another run uses it ($(head -c 200 "$lock")); wait for its end"
