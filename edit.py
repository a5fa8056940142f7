import re
p='wire.py'
t=open(p).read()
head_end=t.index('SHARE = 0.8')
t='''"""``python -m linerate study wire``: how fast, how exactly and how truthfully the netns bench sends.

Over one veth pair between two namespaces made for it, 64-byte frames (60 without FCS) are sent in turns by ``trafgen``
of netsniff-ng, by ``iperf3 -u`` and by the embedded server's wire backend, flat out, each with all CPUs it takes and on
one CPU; then by the backend at half of trafgen's rate; then both ways at once. Every count is the kernel's own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from ..embedded.backend import PortCounters, StreamTraffic
from ..embedded.wire import WireBackend, WirePort
from ..errors import BenchError
from ..generators.steal import Ticks
from ..testbed.leases import clear_stale, release, reserve
from ..testbed.namespaces import Topology, available, find, plan
from .wire_figures import FRAME, CpuTime, Sample, best, cpu_ratio, rate_ratio, table
from .wire_rivals import LIMIT, Iperf3, Trafgen, run

'''+t[head_end:]
t=t.replace('''"""The least part of trafgen's rate that the backend has to reach."""
''','''"""The least part of the best rival's rate that the backend has to reach."""
''')
t=t.replace('''LIMIT = 10.0
"""Seconds that a command may take."""

''','''OURS = "embedded server"

ONE = ", one CPU"
"""What the names of senders held to one CPU end with."""

''')
t=t.replace('default=2.0, help="seconds of each measurement (default 2)"','default=1.5, help="seconds of each measurement (default 1.5)"')
a=t.index("    with _testbed() as (topology, folder), contextlib"); b=t.index("@contextlib.contextmanager\ndef _testbed")
t=t[:a]+'''    with (
        _testbed() as (topology, folder),
        contextlib.closing(_backend(topology)) as backend,
        # its senders are started with the CPUs of their parent
        _held_to(_one_cpu()),
        contextlib.closing(_backend(topology)) as single,
    ):
        study = _Study(topology, backend, arguments.seconds, arguments.rounds)
'''+t[b:]
open(p,'w').write(t)
