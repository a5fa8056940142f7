"""The TRex driver, its client's process and trex-stl-lib against the embedded server: counts, owners, endings."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from lineproof.core.trial import DURING_READING, Load, Tolerance, read_trial
from lineproof.errors import TestbedError
from lineproof.generators.base import Direction, Probe
from lineproof.generators.trex.client.sockets import plain_bytes
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from lineproof_bench.server.rpc import Dispatcher
from support.catalogue import CATALOGUE
from support.embedded_server import EmbeddedServer, embedded_server
from support.leftovers import owner, runs
from support.paths import VARIABLES
from support.patience import wait_until
from support.server_support import FakeBackend, serving
from support.trex_profile_support import sending

pytestmark = pytest.mark.slow
AHEAD, BACK = Direction(0, 1), Direction(1, 0, swapped=True)
LATE = Tolerance(ends_in_time=True)
"""A busy machine gets the message of the end late, which says nothing about this server's rate: it ends in time."""


@dataclass(frozen=True)
class Testbed:
    """A running server with a cable between its ports, and the client that is used with it."""

    server: EmbeddedServer
    client: str

    def settings(self, **other: Any) -> TrexSettings:
        facts = self.server.facts
        return TrexSettings("127.0.0.1", facts["rpc_port"], facts["pub_port"], client=self.client, **other)

    @contextmanager
    def user(self, name: str, **other: Any) -> Iterator[TrexGenerator]:
        with contextlib.closing(TrexGenerator(self.settings(username=name, **other))) as generator:
            yield generator


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    with embedded_server(tmp_path_factory.mktemp("server"), bypass=True) as found:
        yield found


@pytest.fixture
def testbed(server: EmbeddedServer, client: str) -> Testbed:
    return Testbed(server, client)


@pytest.fixture
def another(tmp_path: Path, client: str) -> Iterator[Callable[..., Testbed]]:
    with contextlib.ExitStack() as stack:
        yield lambda **more: Testbed(stack.enter_context(embedded_server(tmp_path, bypass=True, **more)), client)


def children() -> set[int]:
    return {item.pid for item in psutil.Process().children() if item.status() != psutil.STATUS_ZOMBIE}


def test_frames_of_both_directions_are_counted(testbed: Testbed, client: str) -> None:
    before = children()
    with testbed.user("alice") as generator:
        assert [port.index for port in generator.ports] == [0, 1]
        assert all(port.link_up and port.speed_bps == 10e9 for port in generator.ports)
        assert generator.versions["client"] == ("trex-stl-lib 0.3" if client == "pypi" else f"TRex's own, of {client}")
        generator.prepare(CATALOGUE.profile(["imix"]), (AHEAD, BACK))
        for _ in range(3):
            trial = read_trial(1, generator.measure(Load(48_000), 0.2), LATE)
            assert trial.is_clean and trial.lost == 0
            for direction in trial.outcome.directions:
                assert direction.intended == 9600 and direction.offered == pytest.approx(9600, abs=3)
                mean = CATALOGUE.profile(["imix"]).mean_size
                assert direction.offered_bytes == pytest.approx(mean * direction.offered, rel=0.01)
        generator.prepare(CATALOGUE.profile(["64b", "1-flow"]), (AHEAD,))
        [direction] = generator.measure(Load(50_000), 0.1).directions
        assert (direction.tx_port, direction.offered, direction.offered_bytes) == (0, 5000, 5000 * 64)
    assert children() == before


def test_a_trial_asks_once_before_its_traffic_and_once_after_it(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    messages, handle = list[set[str]](), Dispatcher.handle

    def kept(dispatcher: Dispatcher, request: bytes) -> bytes:
        calls = json.loads(plain_bytes(request))
        messages.append({call["method"] for call in (calls if isinstance(calls, list) else [calls])})
        return handle(dispatcher, request)

    with sending(FakeBackend(), client) as generator:
        generator.prepare(CATALOGUE.profile(["64b"]), (AHEAD, BACK), Probe(100.0, times=False))
        generator.measure(Load(1000), 0.1)
        with monkeypatch.context() as patched:
            patched.setattr(Dispatcher, "handle", kept)
            generator.measure(Load(1000), 0.1)
    # how often counters are read while frames are sent, and links looked at on a busy machine, is a matter of time
    meanwhile = {"ping", "get_port_stats", "get_async_events"}, {"get_port_status"}, {"get_utilization"}
    told = [names for names in messages if not any(names <= some for some in meanwhile)]
    outside = {"ping", "get_global_stats", "get_port_stats", "get_port_status", "get_utilization"}
    outside |= {"get_port_xstats_values"} | ({"get_async_events"} if client != "pypi" else set())
    assert told[:2] == [{"remove_all_streams", "add_stream"}] * 2
    assert told[2] == outside and "start_traffic" in told[3] and told[4] == outside | {"get_pgid_stats"}
    assert told[5:6] == ([{"publish_now"}] if client == "pypi" else [])


def test_received_frames_are_captured(testbed: Testbed) -> None:
    with testbed.user("alice") as generator:
        generator.prepare(CATALOGUE.profile(["64b", "1-flow"]), (AHEAD,))
        frames = generator.measure(Load(1000), 0.05, keep=3).frames
        assert set(frames) == {1} and len(frames[1]) == 3 and frames[1][0][26:34].hex() == "1000000130000001"
        # afterwards trials work as before
        assert generator.measure(Load(1000), 0.1).directions[0].forwarded == 100


@pytest.mark.parametrize("words", [["64b"], ["imix"]])
def test_a_burst_has_exactly_its_frames_and_restores_the_streams(testbed: Testbed, words: list[str]) -> None:
    with testbed.user("alice") as generator:
        generator.prepare(CATALOGUE.profile(words), (AHEAD, BACK))
        for frames in (1, 1000, 20_001):
            outcome = generator.burst(frames, 100_000.0)
            assert {(row.intended, row.offered, row.forwarded) for row in outcome.directions} == {(frames,) * 3}
            assert outcome.duration == pytest.approx(frames / 1e5) and read_trial(1, outcome, LATE).is_clean
        assert generator.measure(Load(10_000), 0.1).directions[0].offered == pytest.approx(1000, abs=3)


def test_probe_frames_of_a_trial_that_counts_none_are_not_those_of_the_next(testbed: Testbed) -> None:
    with testbed.user("alice") as generator:
        generator.prepare(CATALOGUE.profile(["64b"]), (AHEAD,), Probe(100.0, times=False))
        [first] = generator.measure(Load(10_000), 0.2).latency
        assert generator.measure(Load(10_000), 0.5, lambda wait: None).latency == ()
        [found] = generator.measure(Load(10_000), 0.2).latency
    assert found.received == found.sent == pytest.approx(first.sent, abs=3)


def test_step_down_changes_the_load_without_a_pause(testbed: Testbed) -> None:
    with testbed.user("alice") as generator:
        generator.prepare(CATALOGUE.profile(["64b"]), (AHEAD, BACK))
        found = generator.step_down(Load(100_000), 1.0, Load(50_000), 4.0, 0.05)
        trial = read_trial(1, found.outcome, LATE)
    # the intended frames follow the measured time of the change
    assert trial.problems == () and trial.lost == 0
    # on a busy machine the change comes late
    assert 300_000 <= trial.outcome.directions[0].offered < 500_000
    assert found.sent[0] <= 50_000 * 1.005 and found.sent[1] >= 50_000 * 0.995
    for direction in (0, 1):
        sent = [moment.offered[direction] for moment in (found.before, found.after, *found.samples)]
        assert sent == sorted(sent) and sent[-1] < trial.outcome.directions[direction].offered
        # frames in transit between two readings: much less than those of 1 s
        assert max(moment.missing(direction) for moment in found.samples) <= 2500
    assert len(found.samples) >= 3


def test_a_change_that_comes_after_the_end_shows_nothing_of_the_second_load(testbed: Testbed) -> None:
    with testbed.user("alice") as generator:
        generator.prepare(CATALOGUE.profile(["64b"]), (AHEAD, BACK))
        late = generator.step_down(Load(100_000), 1.0, Load(50_000), -0.5, 0.05)
    assert [(row.offered, row.lost) for row in late.outcome.directions] == [(50_000, 0)] * 2
    assert late.samples == () and late.recovery(0) is None


def test_something_is_done_while_every_port_sends(testbed: Testbed) -> None:
    done: list[float] = []

    def during(wait: Callable[[float], None]) -> None:
        began = time.monotonic()
        wait(0.2)
        done.append(time.monotonic() - began)

    def fails(wait: Callable[[float], None]) -> None:
        raise KeyError("the router")

    with testbed.user("alice") as generator:
        generator.prepare(CATALOGUE.profile(["64b"]), (AHEAD, BACK))
        found = generator.measure(Load(10_000), 3.0, during)
        assert done[0] >= 0.2 and found.readings[DURING_READING] >= done[0]
        trial = read_trial(1, found, LATE)
        assert trial.is_clean and trial.lost == 0
        assert [row.offered for row in trial.outcome.directions] == [pytest.approx(30_000, abs=3)] * 2
        with pytest.raises(KeyError, match="the router"):
            generator.measure(Load(1000), 3600, fails)
        assert generator.measure(Load(1000), 0.1).directions[0].forwarded == 100


def test_ports_have_one_owner_who_is_named(testbed: Testbed) -> None:
    with testbed.user("alice") as alice:
        alice.prepare(CATALOGUE.profile(["64b"]), (AHEAD,))
        with pytest.raises(TestbedError, match=r"taken: .*'alice'.*force"):
            TrexGenerator(testbed.settings(username="bob"))
        assert alice.measure(Load(1000), 0.05).directions[0].offered == 50
        with testbed.user("bob", force=True) as bob:
            bob.prepare(CATALOGUE.profile(["64b"]), (AHEAD,))
            assert bob.measure(Load(1000), 0.05).directions[0].offered == 50
            # also where frames are kept, for which the ports need another mode first
            for keep in (0, 3):
                with pytest.raises(TestbedError, match=r"no longer ours: port 0 is held by 'bob' now"):
                    alice.measure(Load(1000), 0.05, keep=keep)


def test_a_trial_ends_when_its_ports_are_taken(testbed: Testbed) -> None:
    with contextlib.ExitStack() as bob, testbed.user("alice") as alice:
        alice.prepare(CATALOGUE.profile(["64b"]), (AHEAD,))
        taking = threading.Timer(0.0, lambda: bob.enter_context(testbed.user("bob", force=True)))
        taking.start()
        with pytest.raises(TestbedError, match=r"no longer ours.*bob"):
            alice.measure(Load(1000), 20)
        taking.join()


def test_a_server_killed_during_a_trial_is_an_error_and_leaves_no_process(another: Callable[..., Testbed]) -> None:
    before, dying = children(), another()
    with dying.user("alice") as generator:
        generator.prepare(CATALOGUE.profile(["64b"]), (AHEAD,))
        threading.Timer(0.5, dying.server.process.kill).start()
        with pytest.raises(TestbedError, match="no longer answers"):
            generator.measure(Load(1000), 60)
        with pytest.raises(TestbedError):
            generator.measure(Load(1000), 0.1)
    assert children() - {dying.server.process.pid} == before


@contextmanager
def far(*targets: int) -> Iterator[list[int]]:
    """Ports of this machine that lead to *targets*; an answer comes 40 ms later."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(20)

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        waiting = deque[bytes]()
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                # bytes keep their order; calls of the same moment do not
                waiting.append(data)
                loop.call_later(0.02, lambda: writer.write(waiting.popleft()))
        loop.call_later(0.03, writer.close)

    async def connect(target: int, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        there, on = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(carry(near, on), carry(there, back))

    servers = [run(asyncio.start_server(partial(connect, target), "127.0.0.1", 0)) for target in targets]
    try:
        yield [server.sockets[0].getsockname()[1] for server in servers]
    finally:
        loop.call_soon_threadsafe(loop.stop)


def test_the_time_of_sending_is_known_better_than_the_way_of_40_ms_there(client: str) -> None:
    """By the clock of the server itself, however far away it is; a trial ends when the frames are sent."""
    with serving(FakeBackend()) as server, far(server.rpc_port, server.pub_port) as (sync, events):
        there = TrexSettings("127.0.0.1", sync, events, client=client)
        with contextlib.closing(TrexGenerator(there)) as generator:
            far_away = min(generator.round_trips())
            assert far_away >= 0.04
            generator.prepare(CATALOGUE.profile(["64b"]), (AHEAD, BACK))
            trials = [read_trial(1, generator.measure(Load(5000), 0.5), Tolerance()) for _ in range(5)]
    assert all(row.lost == 0 and row.unsent <= 1 for trial in trials for row in trial.outcome.directions)
    assert all(trial.seconds.low <= 0.5 <= trial.seconds.high for trial in trials)
    # others may have the processor meanwhile, in most of them
    assert min(trial.seconds.high for trial in trials if trial.is_clean) < 0.5 + far_away / 2


SENDER = """
import sys
from contextlib import closing
from pathlib import Path
from lineproof.generators.base import Direction, Probe
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from lineproof.core.traffic.catalogue import Catalogue
from lineproof.core.trial import Load
sync, events, folder, client = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
with closing(TrexGenerator(TrexSettings("127.0.0.1", sync, events, username="alice", client=client))) as generator:
    generator.prepare(Catalogue.read(folder).profile(["64b"]), (Direction(0, 1),))
    print(generator._process.pid, flush=True)
    generator.measure(Load(1000), 60)
"""


@contextmanager
def sender(testbed: Testbed) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A program that sends for a minute as 'alice', and its client's process id. It is to be ended inside."""
    ports = [testbed.server.facts[name] for name in ("rpc_port", "pub_port")]
    with owner(SENDER, *ports, VARIABLES / "profiles", testbed.client) as (program, pid):
        yield program, int(pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_traffic_and_client_end_with_their_process(testbed: Testbed, number: signal.Signals) -> None:
    with sender(testbed) as (program, pid):
        child = psutil.Process(pid)
        time.sleep(0.3)  # the trial runs
        os.killpg(program.pid, number)
    wait_until(lambda: not runs(child), "the client's process did not end", 30)
    # the ports are free without force, and no traffic is running
    with testbed.user("bob") as generator:
        generator.prepare(CATALOGUE.profile(["64b"]), (AHEAD,))
        assert generator.measure(Load(1000), 0.1).directions[0].offered == 100


def test_ports_of_a_killed_run_are_released_without_force(another: Callable[..., Testbed]) -> None:
    testbed = another()
    with sender(testbed) as (program, pid):
        os.kill(pid, signal.SIGKILL)
        program.kill()
    with testbed.user("alice") as generator:
        assert "by 'alice' given back for a run that was killed: process " in generator.versions["leftover"]
        generator.prepare(CATALOGUE.profile(["64b"]), (AHEAD,))
        assert generator.measure(Load(1000), 0.1).directions[0].offered == 100
        # the claim of a run that goes on is not used
        with pytest.raises(TestbedError, match=r"taken: .*'alice'"):
            TrexGenerator(testbed.settings(username="alice"))
        with testbed.user("bob", force=True) as other:
            assert other.versions["force"] == "allowed; held when the run began: 0 by 'alice', 1 by 'alice'"
