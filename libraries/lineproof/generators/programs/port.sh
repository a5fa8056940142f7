# The functions of the shell that holds one port (port.py), whose 'interface' is set. It reads commands from standard
# input and ends with it; then it ends its programs and undoes what was set. Its current folder is its own.
# POSIX sh, with mktemp(1) and timeout(1).
umask 077
exec 2>&1
LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin:/usr/local/sbin:/usr/local/bin
export LC_ALL PATH interface
undo=:
# its lock, and whose run it is
[ -z "$1" ] || printf %s "$2" >"$1"
folder=$(mktemp -d /tmp/lineproof-port.XXXXXX) && cd "$folder" || exit 93

# await SECONDS CONDITION: fails if it does not hold in time
await() {
  tries=$(($1 * 50))
  until eval "$2"; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || return 1
    sleep 0.02
  done
}
# start NAME LIMIT COMMAND: in the background; after LIMIT s it is asked to end, 3 s later it is killed.
# NAME.out is what it wrote; NAME.status its exit status and, in two lines more, the CPU time of times(1).
start() {
  halt "$1"
  : >"$1.out"
  (
    timeout -s INT -k 3 "$2" /bin/sh -c "exec $3" </dev/null >"$1.out" 2>&1 &
    echo "$!" >"$1.pid"
    wait "$!"
    { echo "$?"; times; } >"$1.new"
    mv "$1.new" "$1.status"
  ) >/dev/null 2>&1 &
}
# pid_of NAME: of timeout(1), which leads a group of its own on Linux
pid_of() {
  name=$1
  await 4 '[ -s "$name.pid" ]' && cat "$name.pid"
}
interrupt() { kill -s INT "$(pid_of "$1")" 2>/dev/null || :; }
ended() { [ ! -e "$1.status" ] || cat "$1.status" "$1.out"; }
# halt [NAME]: ends it, or all, with what they started
halt() {
  for name in ${1:-$(ls | sed -n 's/\.out$//p')}; do
    if [ -e "$name.out" ] && [ ! -e "$name.status" ]; then
      leader=$(pid_of "$name")
      kill -s TERM "$leader" 2>/dev/null
      kill -s KILL -- "-$leader" 2>/dev/null || { sleep 0.2; kill -s KILL "$leader" 2>/dev/null; }
      # else its status might be taken for that of the next one of its name
      await 1 '[ -e "$name.status" ]'
    fi
    rm -f "$name".*
  done
}
end() { trap '' TERM HUP INT PIPE; halt; eval "$undo" >/dev/null 2>&1; cd /; rm -rf -- "$folder"; }
trap end EXIT
# PIPE: who reads its answers was killed
trap 'exit 1' TERM HUP INT PIPE

# facts: five lines, empty where unknown: MAC address, carrier (1 or 0), speed in Mbit/s, MTU, driver
facts() {
  if [ "$(uname -s)" = FreeBSD ]; then
    shown=$(ifconfig "$interface" 2>/dev/null) || none "$(ifconfig -l)" || return
    first() { printf '%s\n' "$shown" | sed -nE "$1" | head -n 1; }
    address=$(first 's/^[[:space:]]*(hwaddr|ether) ([0-9a-f:]{17}).*/\2/p')
    carrier=$(first 's/.*status: active.*/1/p')
    speed=$(first 's/.*\((autoselect )?<?(10+)[bB]ase.*/\2/p; s/.*\((autoselect )?<?(10+)[gG][bB]ase.*/\2000/p')
    mtu=$(first 's/.* mtu ([0-9]+).*/\1/p')
    driver=$(printf '%s\n' "$interface" | sed 's/[0-9]*$//')
    carrier=${carrier:-0}
  else
    at=/sys/class/net/$interface
    [ -d "$at" ] || none "$(ls /sys/class/net)" || return
    for key in address carrier speed mtu; do eval "$key=\$(cat \"\$at/$key\" 2>/dev/null)"; done
    driver=$(basename "$(readlink "$at/device/driver" 2>/dev/null)")
    # a virtual interface reports a speed that it does not have
    [ -n "$driver" ] || speed=
  fi
  printf '%s\n' "$address" "$carrier" "$speed" "$mtu" "$driver"
}
none() { echo "there is no interface '$interface'; there are:" $1; return 1; }
# counters: frames that were sent and received, their bytes with FCS, errors of sending and of receiving; of
# Documentation/ABI/testing/sysfs-class-net-statistics of the kernel
counters() {
  for key in rx_packets rx_bytes tx_packets tx_bytes rx_errors rx_missed_errors tx_errors; do
    read -r "$key" <"/sys/class/net/$interface/statistics/$key" || return
  done
  echo "$tx_packets $rx_packets $((tx_bytes + 4 * tx_packets)) $((rx_bytes + 4 * rx_packets))" \
    "$tx_errors $((rx_errors + rx_missed_errors))"
}
# cores: the numbers of the processors that programs may use
cores() {
  sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status | tr , '\n' |
    while IFS=- read -r least most; do seq "$least" "${most:-$least}"; done
}

# watch_sending FRAMES SECONDS: watches the interface, as the program 'watch', until it has sent FRAMES, for SECONDS at
# most. It writes the earliest and the latest moment (Unix time, s) at which the first can have been sent, and at which
# the last can. It ends when all were, or none is for a second.
cat >watching.py <<'@@'
import os, sys, time
frames, seconds = int(sys.argv[1]), float(sys.argv[2])
f = open('/sys/class/net/%s/statistics/tx_packets' % os.environ['interface'])
def count():
    f.seek(0)
    return int(f.read())
base = last = count()
print('ready', flush=True)
now = time.monotonic()
until, first, full = now + seconds, None, None
while now < until:
    time.sleep(0.0005)
    start, now_count, after = time.monotonic(), count(), time.monotonic()
    if now_count != last:
        first, full, last = first or (now, after), (now, after), now_count
    now = start
    if last - base >= frames or (full and after - full[1] > 1.0):
        break
day = time.time() - time.monotonic()
print('sent', *('%.6f' % (day + moment) for moment in (first or ()) + (full or ())))
@@
watch_sending() {
  start watch "$((${2%.*} + 5))" "python3 -I watching.py $1 $2"
  await 4 '[ -s watch.out ]' || :
}
