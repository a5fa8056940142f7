"""Frames that came back are compared with those that were sent: honest routers are believed, each lie is named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.core.bounds import Bounds
from lineproof.core.traffic.ip_header import ip_header, ipv4_checksum
from lineproof.core.trial import DirectionCount, Fault, Load, Outcome, Problem, Trial
from lineproof.generators.base import Direction, GeneratorPort, Probe, directions_of
from lineproof.generators.streams import profile_streams
from lineproof.session.came_back import ADDRESSES, COPIES, HEADER, TAGS, Content, surely_changed, with_content
from support.catalogue import CATALOGUE

SENDER, RECEIVER, ROUTER = "02:00:00:00:00:01", "02:00:00:00:00:02", bytes.fromhex("020000000099")
PORTS = {
    0: GeneratorPort(0, SENDER, 1e10, True, "net_af_packet", card_mac=SENDER, is_virtual=True),
    1: GeneratorPort(1, RECEIVER, 1e10, True, "net_af_packet", card_mac=RECEIVER, is_virtual=True),
}
TRAFFIC = ["64b", "imix", "1514b 1-flow", "66b ipv6", "128b qinq tcp", "128b mpls"]


def content(words: str, both: bool = False, probe: Probe | None = None) -> Content:
    return Content(CATALOGUE.profile(words.split()), directions_of([0, 1], both), probe, PORTS)


def sent(content: Content, direction: Direction, count: int) -> list[bytes]:
    """The first *count* frames that the generator sends, each stream in its turn, each flow in its turn."""
    streams, found = profile_streams(content.profile, direction, content.probe), list[bytes]()
    for number in range(count):
        stream = streams[number % len(streams)]
        data, turn = bytearray(bytes.fromhex(stream.frame)), number // len(streams)
        for item in stream.variables:
            value = item.minimum + turn * item.step % (item.maximum - item.minimum + 1)
            data[item.offset : item.offset + 4] = value.to_bytes(4, "big")
        if stream.group is not None:
            data[-16:] = b"\xab" + number.to_bytes(15, "big")
        found.append(fixed(bytes(data)))
    return found


def fixed(frame: bytes) -> bytes:
    header = ip_header(frame)
    assert header is not None
    if header.version == 6:
        return frame
    at, data = header.offset, bytearray(frame)
    data[at + 10 : at + 12] = bytes(2)
    data[at + 10 : at + 12] = ipv4_checksum(bytes(data[at : at + 20])).to_bytes(2, "big")
    return bytes(data)


def forwarded(frame: bytes, to: str = RECEIVER) -> bytes:
    """*frame* as an honest router sends it on."""
    header = ip_header(frame)
    assert header is not None
    data, place = bytearray(frame), header.offset + (8 if header.version == 4 else 7)
    data[:12] = bytes.fromhex(to.replace(":", "")) + ROUTER
    data[place] -= 1
    return fixed(bytes(data))


def changed(at: int, value: bytes, right_checksum: bool = True) -> Callable[[bytes], bytes]:
    """A router that writes *value* so many bytes after the beginning of the IP header."""

    def change(frame: bytes) -> bytes:
        header = ip_header(frame)
        assert header is not None
        place = header.offset + at
        data = frame[:place] + value + frame[place + len(value) :]
        return fixed(data) if right_checksum else data

    return change


LIES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "payload": (changed(40, b"changed"), "with another payload"),
    "checksum": (changed(10, b"\x12\x34", right_checksum=False), "with a wrong checksum"),
    "time to live 0": (changed(8, b"\0"), "with a wrong time to live"),
    "time to live as it was": (changed(8, b"\x40"), "with a wrong time to live"),
    "destination": (changed(16, b"\x0a\0\0\x01"), ADDRESSES),
    "port": (changed(22, b"\x00\x07"), ADDRESSES),
    "both ports": (changed(20, b"\x00\x07\x00\x07"), ADDRESSES),
    "mark": (changed(1, b"\xb8"), HEADER),
    "more fragments": (changed(6, b"\x20"), HEADER),
    "padding": (lambda frame: frame + bytes(8), "longer than they were sent"),
    "tag": (lambda frame: frame[:12] + b"\x81\0\0\x07" + frame[12:], TAGS),
    "MAC": (lambda frame: b"\x02\0\0\0\0\x77" + frame[6:], "with another MAC address"),
    "cut": (lambda frame: frame[:60], "cut short"),
    "cut and told so": (lambda frame: changed(2, b"\0\x2e")(frame[:60]), "with another payload"),
    "LLDP": (lambda frame: bytes.fromhex("0180c200000e020000000099") + b"\x88\xcc" + bytes(46), "of other origin"),
}


@pytest.mark.parametrize(
    ("words", "probe"),
    # labelled frames have no probes
    [(words, probe) for words in TRAFFIC for probe in (None, Probe(100.0)) if not (probe and "mpls" in words)],
)
def test_an_honest_router_is_believed(words: str, probe: Probe | None) -> None:
    compared = content(words, both=True, probe=probe)
    for direction, port in zip(compared.directions, (RECEIVER, SENDER), strict=True):
        frames = [forwarded(frame, port) for frame in sent(compared, direction, 1000)]
        assert compared.wrong(direction, frames) == Counter()


def sent_forth(compared: Content, count: int) -> list[bytes]:
    return sent(compared, compared.directions[0], count)


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_named(lie: str) -> None:
    change, word = LIES[lie]
    compared = content("imix" if lie.startswith("cut") else "512b")
    frames = [forwarded(frame) for frame in sent_forth(compared, 100)]
    long = [place for place, frame in enumerate(frames) if len(frame) > 60][7:10]
    frames = [change(frame) if place in long else frame for place, frame in enumerate(frames)]
    assert compared.wrong(compared.directions[0], frames) == Counter({word: 3})


@given(st.binary(max_size=200))
def test_any_bytes_are_compared(frame: bytes) -> None:
    compared = content("64b")
    assert compared.wrong(compared.directions[0], [frame]).total() == 1


def test_frames_that_are_returned_to_their_sender_are_the_other_directions() -> None:
    compared = content("64b", both=True)
    back = [forwarded(frame, SENDER) for frame in sent(compared, compared.directions[1], 98)]
    returned = [forwarded(frame, SENDER) for frame in sent_forth(compared, 2)]
    assert compared.wrong(compared.directions[1], [*back, *returned]) == Counter({"of another direction": 2})


@pytest.mark.parametrize(
    ("came", "least"),
    [
        (lambda frames: [frame for frame in frames[::2] for _ in range(2)], 498),
        (lambda frames: [frames[0]] * len(frames), 990),
        (lambda frames: [frames[8] if frame == frames[9] else frame for frame in frames], 3),
        (lambda frames: [frames[at - 20 if at % 47 == 46 else at] for at in range(len(frames))], 21),
    ],
    ids=["copies for losses", "one cached frame", "a dead flow and a doubled one", "copies that come late"],
)
def test_a_flow_that_comes_out_of_turn_stands_for_another(
    came: Callable[[list[bytes]], list[bytes]], least: int
) -> None:
    compared = content("64b")
    frames = came([forwarded(frame) for frame in sent_forth(compared, 1000)])
    assert compared.wrong(compared.directions[0], frames, lost=0)[COPIES] >= least


def outcome(row: DirectionCount, frames: tuple[bytes, ...] = ()) -> Outcome:
    return Outcome(Load(1000.0), 1.0, 1.0, 0.0, (row,), frames={1: frames})


ROW = DirectionCount(0, 1, 1000, 1000, 1000, 64_000, 64_000)


def test_frames_that_are_none_that_was_sent_are_not_forwarded() -> None:
    compared = content("64b")
    frames = [forwarded(frame) for frame in sent_forth(compared, 100)]
    frames[::10] = map(LIES["payload"][0], frames[::10])
    found = with_content(outcome(replace(ROW, forwarded=400), tuple(frames)), compared, {})
    (row,), (problem,) = found.directions, found.problems
    # the others may be of a burst of changed ones, and of those that came no more can have changed
    assert (row.forwarded, row.changed, row.received, row.lost) == (390, 10, 400, 610)
    assert problem.fault is Fault.CHANGED and problem.frames is not None and 40 < problem.frames < 60
    assert (found.readings["examined.1"], found.readings["seen_changed.1"]) == (100, 10)


@pytest.mark.parametrize(
    ("seen", "least", "most"),
    # 5 % all the time; a burst at the end of one trial; the end of the only one
    [([50] * 8, 270_000, 400_000), ([0] * 20 + [1000] + [0] * 12, 1000, 2000), ([1000], 40_000, 50_000)],
)
def test_changed_frames_are_a_share_of_the_time_only_as_several_trials_show(
    seen: list[int], least: int, most: int
) -> None:
    rows = [DirectionCount(0, 1, 10**6, 10**6, 10**6 - changed, changed=changed) for changed in seen]
    readings = [{"examined.1": 1000.0, **({"seen_changed.1": count} if count else {})} for count in seen]
    outcomes = [
        Outcome(Load(1e6), 1.0, 1.0, 0.0, (row,), readings=shown) for row, shown in zip(rows, readings, strict=True)
    ]
    problem = Problem(Fault.CHANGED, "", 900_000, ((0, 1),))
    trials = [Trial(at, outcome, (problem,), Bounds(1.0, 1.0)) for at, outcome in enumerate(outcomes, 1)]
    shown = surely_changed(trials)
    changed = [trial.outcome.directions[0].changed for trial in shown]
    assert least <= sum(changed) <= most and list(map(bool, changed)) == list(map(bool, seen))
    # the other end stays where it was
    ends = [[trial.lost_frames(trial.outcome.directions[0]).high for trial in ones] for ones in (trials, shown)]
    assert ends[0] == ends[1]


def test_what_slow_traffic_showed_holds_for_each_trial() -> None:
    found = with_content(outcome(ROW), content("64b"), {1: (Counter({"with another payload": 5}), 10)})
    assert found.directions == (ROW,) and found.readings["examined_slowly.1"] == 10
    assert found.problems[0].frames is not None and found.problems[0].frames > 500


@pytest.mark.parametrize(
    ("words", "offered", "received", "least"),
    [
        ("1514b", 1000 * 1518, 1000 * 64, 998),  # all were cut to the shortest frame
        ("1514b", 1000 * 1518, 1000 * 1514, 0),  # a card that counts no FCS
        ("1514b", 1000 * 1518, 990 * 1518, 0),
        ("imix", 1000 * 400, 500 * 300, 0),
        ("64b", 0, 64_000, 0),
    ],
)
def test_bytes_show_frames_that_came_back_shorter(words: str, offered: int, received: int, least: int) -> None:
    frames = 500 if words == "imix" else 990 if received == 990 * 1518 else 1000
    row = replace(ROW, forwarded=frames, offered_bytes=offered, forwarded_bytes=received)
    assert with_content(outcome(row), content(words), {}).directions[0].changed == least
