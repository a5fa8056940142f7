"""Takes the place of pkt-gen: its arguments, its output, and no frames. A file beside it is the cable and the switch.

The output is that of ``tx_output`` and ``main_thread`` in tools/tools/netmap/pkt-gen.c of FreeBSD's source.
"""

import argparse
import json
import signal
import sys
import time
from pathlib import Path

parser = argparse.ArgumentParser()
for name in "ifwnRlsdSD":
    parser.add_argument(f"-{name}")
found = parser.parse_args()
cable = Path(__file__).resolve().parent / "cable.json"
state = json.loads(cable.read_text()) if cable.exists() else {}


def report(what: str, frames: int, seconds: float) -> None:
    if not frames:
        print(f"{what} nothing.")
        return
    size = int(found.l or 60)
    print(f"{what} {frames} packets {frames * size} bytes 20 events {size} bytes each in {seconds:.2f} seconds.")
    print(f"Speed: {frames / seconds:.3f} pps Bandwidth: 1.000 Mbps (raw 1.000 Mbps). Average batch: 5.00 pkts")


print(f"000.000001 main [2552] interface is {found.i}", flush=True)
if found.f == "tx":
    frames, seconds = int(found.n), int(found.n) / int(found.R)
    time.sleep(seconds)
    lost, unseen = int(state.get("lose", 0)), int(state.get("unseen", 0))
    state["waiting"] = frames - lost
    state["received_1"] = state.get("received_1", 0) + frames - unseen
    state["sent_2"] = state.get("sent_2", 0) + frames - lost
    state["arguments"] = sys.argv[1:]
    cable.write_text(json.dumps(state))
    report("Sent", frames, seconds)
else:
    ended: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: ended.append(number))
    began = time.monotonic()
    while not ended:
        time.sleep(0.01)
    state = json.loads(cable.read_text()) if cable.exists() else {}
    report("Received", int(state.get("waiting", 0)), time.monotonic() - began)
    cable.write_text(json.dumps({**state, "waiting": 0}))
