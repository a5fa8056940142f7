"""A folder that looks like a TRex installation: its ``t-rex-64`` takes TRex's arguments and runs the embedded server.

The name of the folder says how it fails: ``good``, ``dies`` (before it serves), ``mute`` (its API never answers),
``deaf`` (SIGINT does not end it).
"""

from __future__ import annotations

import sys
from pathlib import Path

from support.paths import LIBRARIES, VARIABLES

PLATFORM = VARIABLES / "platforms" / "netgate6100.yaml"

PROGRAM = """#!{python} -P
import json, os, signal, subprocess, sys, time
import yaml

def value(name):
    return sys.argv[sys.argv.index(name) + 1]

kind = os.path.basename(os.getcwd())
for needed in ("-i", "--stl", "--no-scapy-server"):
    assert needed in sys.argv, sys.argv
(config,) = yaml.safe_load(open(value("--cfg")))
with open("seen.json", "w") as seen:
    json.dump({{"pid": os.getpid(), "cfg": value("--cfg")}}, seen)
print("Starting  TRex v2.87 please wait  ...", flush=True)
print("\\033[2J set driver name net_fake", flush=True)
if kind == "dies":
    print("ERROR: Could not find Linux interface nix0.", flush=True)
    sys.exit(255)
if kind == "mute":
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    time.sleep(60)
specification = {{
    "backend": "model", "platform_file": {platform!r}, "software": "vpp", "seed": 1, "clock_speed": 20,
    "bypass": {bypass!r}, "host": "127.0.0.1", "rpc_port": config["zmq_rpc_port"], "pub_port": config["zmq_pub_port"],
}}
server = subprocess.Popen(
    [sys.executable, "-P", "-m", "lineproof_bench"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    env={{**os.environ, "PYTHONPATH": {libraries!r}}},
)

def end(*_):
    if kind != "deaf":
        print(" *** TRex is shutting down - cause: 'received signal SIGINT'", flush=True)
        server.kill()
        os._exit(255)

signal.signal(signal.SIGINT, end)
server.stdin.write(json.dumps(specification).encode() + b"\\n")
server.stdin.flush()
print("zmq publisher at: tcp://*:", config["zmq_pub_port"], server.stdout.readline().decode(), flush=True)
server.wait()
"""


def install(folder: Path, kind: str = "good", *, bypass: bool = True) -> Path:
    """Create it in *folder*; return the installation's folder."""
    home = folder / kind
    home.mkdir()
    program = home / "t-rex-64"
    program.write_text(
        PROGRAM.format(python=sys.executable, platform=str(PLATFORM), libraries=str(LIBRARIES), bypass=bypass)
    )
    program.chmod(0o755)
    return home
