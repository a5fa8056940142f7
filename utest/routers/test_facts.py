"""A router's facts, counters and load: by real outputs and simulated routers, by odd or cut answers nothing made up."""

from __future__ import annotations

import contextlib
import itertools
import random
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lineproof.command_values import facts_of as described_facts
from lineproof.command_values import picked
from lineproof.core.router_facts import NicFacts, RouterFacts
from lineproof.core.under_load import CpuLoad, QueueLoad, cpu_load
from lineproof.errors import TestbedError
from lineproof.routers import BUILT_IN, described, freebsd, linux, make_router, vpp
from lineproof.routers.described import Router
from lineproof.session.router_watch import NamedRouter
from lineproof.system.ssh_shell import Result, Shell, plain_text
from lineproof.testbed.opening import read_host
from support.described_router import with_examples
from support.fake_router import KINDS, SIDES, first_output, sample, shell_of, simulated
from support.fuzz import TIMES
from support.scripted_shells import answering, this_machine

READERS = re.compile(
    r"(uname|cat|lscpu|grep|lspci|pgrep|wc|readlink|nft list chains|ethtool (--json )?-[ailgkxnS]|vppctl show"
    r"|pciconf -lvc|sysctl( -i)?(?= [\w.]+)(?!.*=)|kenv -q|pfctl -s info)( |$)"
)
"""Commands that change nothing."""

DPDK = first_output("vpp-dpdk.txt", "vppctl show hardware-interfaces")
INTERRUPTS = first_output("linux-card.txt", "cat /proc/interrupts")


def facts_of(kind: str, outputs: Mapping[str, tuple[str, int]], *interfaces: str) -> RouterFacts:
    """Return the facts of a router that knows these commands only."""
    return make_router(kind, answering(outputs), interfaces).facts()


# -- VPP ---------------------------------------------------------------------------------------------------------------


def test_a_card_of_dpdk_is_read_with_the_link_that_linux_shows() -> None:
    name, link = "TenGigabitEthernet3/0/0", "/sys/bus/pci/devices/0000:03:00.0"
    shown = {"vppctl show hardware-interfaces": (DPDK, 0)}
    files = {f"cat {link}/current_link_width": ("4\n", 0), f"cat {link}/max_link_speed": ("8.0 GT/s PCIe\n", 0)}
    for answers, expected in ((shown, "0"), ({**shown, **files}, None)):
        (found,) = facts_of("vpp", answers, name).nics
        assert found.other.get("NUMA node") == expected
    assert (found.pcie_width, found.pcie_speed_max) == (4, 8.0)


# -- Linux -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interface", "device", "expected"),
    [
        ("eth2", "../../virtio2\n", {38: 0}),
        ("eth0", "../../0000:02:00.0\n", {40: 0, 41: 1}),
        ("ens1", "../../0000:01:00.0\n", {43: 3}),
        ("eth", "../virtio\n", {}),
        ("eth", "", {}),
    ],
)
def test_interrupts_of_receive_queues_are_found_by_the_names_that_drivers_give(
    interface: str, device: str, expected: Mapping[int, int]
) -> None:
    assert linux.queue_interrupts(INTERRUPTS, interface, device) == expected


@pytest.mark.slow
def test_the_kernel_of_this_machine_is_read_and_nothing_is_made_up() -> None:
    facts = make_router("linux", this_machine, ("lo", "nothere0")).facts()
    assert facts.kernel == subprocess.run(["uname", "-r"], capture_output=True, text=True).stdout.strip()
    assert [nic.interface for nic in facts.nics] == ["lo", "nothere0"]
    assert facts.nics[1] == NicFacts("nothere0") and facts.nics[0].pcie_width is None


def test_the_link_of_a_pci_device_is_read_but_not_what_the_kernel_does_not_know() -> None:
    device = "/sys/bus/pci/devices/0000:03:00.0"
    facts = described_facts("linux", "link", folder=device)
    (command,) = {command for command, _ in facts.values()}
    files = {"numa_node": "-1", "max_link_width": "255", "current_link_width": "8", "max_link_speed": "8.0 GT/s PCIe"}
    found = picked({command: "".join(f"{device}/{name}:{value}\n" for name, value in files.items())}, facts)
    assert found == {"pcie_width": "8", "pcie_speed_max": "8.0"}


HOOKS, CHAINS = "grep -ohwE nft_do_chain|ipt_do_table /proc/kallsyms", "nft list chains"
FORWARD = "table inet a {\n\tchain b {\n\t\ttype filter hook forward priority filter;\n"


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ({}, None),
        ({HOOKS: ("", 1)}, "off"),
        ({HOOKS: ("nft_do_chain\n", 0)}, None),
        ({HOOKS: ("nft_do_chain\n", 0), CHAINS: ("", 0)}, "off"),
        ({HOOKS: ("nft_do_chain\n", 0), CHAINS: (FORWARD, 0)}, "on: nftables (forward)"),
        ({"cat /proc/net/ip_tables_names": ("filter\nnat\n", 0)}, "on: iptables (filter, nat)"),
    ],
)
def test_a_firewall_is_off_only_where_that_was_read(outputs: dict[str, tuple[str, int]], expected: str | None) -> None:
    assert facts_of("linux", outputs).firewall == expected


# -- FreeBSD -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("t5nex0@pci1:130:31:4:\tclass=0x020000\n", "0001:82:1f.4"),
        # Chelsio's ports are parts of another device; a virtual interface has none
        ("port=0", None),
        ("ix0@pci0:3:0:9:", None),
    ],
)
def test_addresses_of_freebsd_are_written_as_linux_does(text: str, address: str | None) -> None:
    assert freebsd.pci_address(text) == address


def test_a_card_without_ethtool_has_the_address_of_its_device() -> None:
    devices = {"eth1": "../../../0000:04:00.0\n", "eth2": "../../../virtio2\n"}
    outputs = {f"readlink /sys/class/net/{name}/device": (path, 0) for name, path in devices.items()}
    found = facts_of("linux", outputs, *devices, "veth0")
    assert [nic.pci_address for nic in found.nics] == ["0000:04:00.0", None, None]


# -- all ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_facts_are_read_by_commands_that_change_nothing(kind: str) -> None:
    commands: list[str] = []

    def shell(command: str, limit: float) -> Result:
        commands.append(command)
        return Result(DPDK.replace("TenGigabitEthernet3/0/0", "eth1") + "nft_do_chain\n", "", 0, 0.0)

    make_router(kind, shell, ("eth1",)).facts()
    assert commands and not [command for command in commands if not READERS.match(command)]


@pytest.mark.parametrize(
    ("version", "workers", "queues", "words"),
    [
        ("22.02", 1, 1, []),
        ("Ubuntu 20.04.3, kernel 5.13", None, None, []),
        ("as found", None, None, []),
        ("22.0", None, None, ["'version': the platform's file says 22.0, the router reports v22.02, Ubuntu 20.04.3"]),
        ("5.1", None, None, ["'version'"]),
        ("22.02", 3, 4, ["'workers': the platform's file says 3, the router has 1", "'rx_queues'"]),
    ],
)
def test_differences_from_the_platforms_file_are_named(
    version: str, workers: int | None, queues: int | None, words: list[str]
) -> None:
    facts = RouterFacts(
        version="v22.02", os="Ubuntu 20.04.3 LTS", kernel="5.13.0-30", workers=1, nics=(NicFacts("a", rx_queues=1),)
    )
    found = facts.beside(version, workers, queues).differences
    assert len(found) == len(words) and all(text.startswith(word) for text, word in zip(found, words, strict=True))
    assert RouterFacts().beside(version, workers, queues).differences == ()


@pytest.mark.parametrize(
    ("ways", "mode", "expected"),
    [
        (("on", "on"), "3", "rx and tx"),
        (("on", "off"), "1", "rx"),
        (("off", "on"), "2", "tx"),
        (("off", "off"), "0", "off"),
        (None, "9", None),
    ],
)
def test_flow_control_is_read_of_linux_and_freebsd(
    ways: tuple[str, str] | None, mode: str, expected: str | None
) -> None:
    pauses = "Pause parameters for eth1:\nAutonegotiate:\ton\nRX:\t\t{}\nTX:\t\t{}\nRX negotiated: on\n"
    text = pauses.format(*ways) if ways else "netlink error: Operation not supported\n"
    (nic,) = facts_of("linux", {"ethtool -a eth1": (text, 0)}, "eth1").nics
    # not recorded, for no virtual card has any: the keys of ethtool 6.1, netlink/pause.c
    shown = '[ {{ "ifname": "eth1", "autonegotiate": true, "rx": {}, "tx": {}, "negotiated": {{ "rx": true }} }} ]\n'
    own = shown.format(*(f"{way == 'on'}".lower() for way in ways)) if ways else "[ ]\n"
    outputs = {"ethtool --json -k lo": (shown, 0), "ethtool --json -a eth1": (own, 0)}
    known = facts_of("linux", outputs, "eth1")
    assert known.nics == (nic,) and ("ethtool --json -a eth1" in known.unread) is (ways is None)
    device = {"sysctl -i dev.ix.0": (f"dev.ix.0.%driver: ix\ndev.ix.0.fc: {mode}\n", 0)}
    (card,) = facts_of("freebsd", device, "ix0").nics
    assert nic.flow_control == card.flow_control == expected


def test_the_mask_of_steering_is_read_and_zero_is_none() -> None:
    folder, masks = "/sys/class/net/eth1/queues", enumerate(("00000000,00000006", "0", "zz", "1,00000000"))
    shown = "".join(f"{folder}/rx-{queue}/rps_cpus:{mask}\n" for queue, mask in masks)
    (nic,) = facts_of("linux", {f"grep -rsH . {folder} --include=rps_cpus": (shown, 0)}, "eth1").nics
    assert nic.steered_to == {0: "1,2", 3: "32"}


# -- the generator's machine is read as it shows itself; what it does not show is missing, with the reason


def test_a_machine_that_shows_nothing_says_so() -> None:
    facts = read_host(lambda command, limit: Result("", "sh: not found\n", 127, 0.0))
    assert facts.unread and facts.os is None and facts.nics == ()


# -- VPP ---------------------------------------------------------------------------------------------------------------


def test_a_clock_that_went_back_gives_no_seconds_and_no_rates() -> None:
    machine = simulated("vpp")[0]
    times = iter(("9000.0", "1.0"))

    def started_again(command: str, limit: float) -> Result:
        found = shell_of(machine)(command, limit)
        if "show clock" not in command:
            return found
        return replace(found, stdout=re.sub(r"Time now [0-9.]+", f"Time now {next(times)}", found.stdout))

    found = make_router("vpp", started_again, ("eth1",)).under_load(lambda: None)
    assert next(times, None) is None and found.seconds is None and found.counters == {}


def test_without_a_clock_no_share_is_known() -> None:
    found = vpp.worker_load(vpp.parse_runtime(plain_text(sample("vpp/w1_polling_max/show_runtime.txt")))[1], 0.0)
    assert found is not None and found.busy is None and found.nodes[0].share is None


# -- FreeBSD -----------------------------------------------------------------------------------------------------------


def test_variables_of_a_card_are_those_of_its_own_port() -> None:
    text = "dev.mlxen.1.a: 1\nhw.mlxen0.a: 2\nhw.mlxen1.a: 3\ndev.ix.10.a: 4\ndev.ix.1.a: 5\n"
    assert [freebsd.sysctl_values(text, name) for name in ("mlxen1", "ix1", "ix")] == [{"a": "3"}, {"a": "5"}, {}]


def test_of_two_displays_the_last_counts() -> None:
    text = sample("freebsd/top-CHIPS.cxgbe.txt")
    both = text + text.replace("CPU1    1  13:14 100.00%", "CPU6    6  13:14  42.00%")
    assert freebsd.Thread("intr{irq285: t5nex0:0a1}", 6, 0.42) in freebsd.parse_top(both)
    assert len(freebsd.parse_top(both)) == len(freebsd.parse_top(text))


def test_a_queue_is_served_where_the_thread_of_its_interrupt_runs() -> None:
    # the names of top are cut before the queue's number: interrupts of vmstat -i, of the same machine, have it
    def cpus(interface: str, device: Mapping[str, str], kind: str) -> dict[int, int]:
        threads = freebsd.parse_top(sample(f"freebsd/top-{kind}.txt"))
        text, shown = (sample(f"freebsd/vmstat-i.{kind.partition('.')[2]}.{end}") for end in ("txt", "libxo.txt"))
        names = freebsd.interrupts(shown)
        counts = dict(re.findall(r"^(?!Total)(.*\S) +(\d+) +\d+$", text, re.MULTILINE))
        assert names == {name: int(total) for name, total in counts.items()}
        return freebsd.queue_cpus(interface, device, threads, names)

    assert cpus("ix", {}, "CHSI.ix") == {}
    # synthetic: the names that sysctl has for the card and its port (cxgbe(4): t4_main.c, t4_child_location_str)
    port = {"%parent": "t5nex0", "%location": "port=0"}
    assert cpus("cxl0", port, "CHIPS.cxgbe") == {0: 7, 1: 1, 2: 0, 3: 6, 4: 5, 5: 4, 6: 2, 7: 3}
    assert cpus("cxl0", {**port, "%parent": "t5nex1"}, "CHIPS.cxgbe") == cpus("cxl0", {}, "CHIPS.cxgbe") == {}


def test_ticks_that_count_back_or_have_no_rate_are_no_seconds() -> None:
    old = freebsd.processor_ticks({freebsd.TIMES: "0 0 10 100 1000 5 0 0 0 2000"})
    new = freebsd.processor_ticks({freebsd.TIMES: "0 0 10 220 1007 5 0 0 0 2127"})
    seconds = [freebsd.seconds_between(*readings) for readings in ((old, new, 127), (new, old, 127), (old, new, 0))]
    assert seconds == [1.0, None, None]
    assert freebsd.processor_ticks({freebsd.TIMES: "0 0 10 100"}) == []


# -- all: processors and queues


def test_ticks_that_count_back_are_no_load() -> None:
    before = dict.fromkeys(("user", "nice", "softirq", "idle"), 10)
    assert cpu_load(3, before, {**before, "idle": 1}, 5.0) == CpuLoad(3, packets_per_s=5.0)
    # by a tick or two the kernel may count back idle time (proc(5))
    assert cpu_load(3, before, {**before, "idle": 8, "user": 20}).busy == 1.0
    assert cpu_load(3, {}, before) == CpuLoad(3)


QUEUES = {
    "linux": (
        *("rx_queue_4_packets", "rx4_packets", "rx-4.packets", "rx-4.rx_packets", "queue_4_rx_cnt"),
        "[4]: rx_ucast_packets",
    ),
    "freebsd": (
        *("queue4.rx_packets", "queue_rx_4.rx_packets", "pf.rxq04.packets", "pf.que4.rx_packets", "rxq.4.rxcsum"),
        *("rxstat4.packets", "queue.4.rx_ucast_packets", "stat.rx_ring4.packets", "stats.rx.queue4.rx_pkts"),
    ),
    "vpp": ("rx_q4_packets", "rx_q4packets", "rx q4packets"),
}
OTHERS = (
    *("rx_queue_4_xdp_packets", "tx_queue_4_packets", "rx4_bytes", "rx_packets", "rx4_packets_phy", "rx_ucast_packets"),
    *("queue.4.tx_ucast_packets", "stat.tx_ring4.packets", "stats.tx.queue4.tx_pkts", "stats.rx.queue4.rx_bytes"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_each_driver_has_names_of_its_own_for_queues(kind: str) -> None:
    # those of the drivers' sources; the counts are made up
    table = next(table for table in described(kind).commands.tables.values() if table.queues)
    for name in QUEUES[kind]:
        assert table.queue_loads("a", {name: 10}, {name: 30}, 2.0, {}) == [QueueLoad("a", 4, "", 10.0)]
        # it was reset meanwhile
        assert table.queue_loads("a", {name: 30}, {name: 10}, 2.0, {}) == [QueueLoad("a", 4)]
    assert table.queue_loads("a", dict.fromkeys(OTHERS, 1), dict.fromkeys(OTHERS, 2), 2.0, {4: "CPU 1"}) == [
        QueueLoad("a", 4, "CPU 1")
    ]


WHERE = "192.0.2.1:22"


def named(kind: str, shell: Shell) -> Router:
    """Return a router whose errors name it."""
    return cast(Router, NamedRouter(make_router(kind, shell, ("eth1", "eth2")), WHERE))


RAW = re.compile(r"Traceback|\[Errno|\b[A-Z][a-z]\w*Error\b|\n")

Change = Callable[[str, random.Random], str]


def cut(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text))] if text else text


def garbled(text: str, chance: random.Random) -> str:
    found = list(text)
    for _ in range(chance.randint(1, 8)):
        if found:
            at = chance.randrange(len(found))
            found[at : at + chance.choice((1, 1, 5))] = chance.choice(
                ("\0", "²", "٣", "\x1b[1m", "9" * 5000, "-", "", "\n", "é", "NaN", "1e999", "\udc80", " ", ":")
            )
    return "".join(found)


def without_a_line(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    if lines:
        del lines[chance.randrange(len(lines))]
    return "".join(lines)


def repeated(text: str, chance: random.Random) -> str:
    return text * 2 or "\n" * 1000


def odd(shell: Shell, change: Change, chance: random.Random) -> Shell:
    """*shell* with each eighth output changed."""
    changed = chance.randrange(8)
    asked = itertools.count()

    def answer(command: str, limit: float) -> Result:
        found = shell(command, limit)
        return replace(found, stdout=change(found.stdout, chance)) if next(asked) % 8 == changed else found

    return answer


def sentence(work: Callable[[], object]) -> None:
    """*work* succeeds, or raises one sentence."""
    try:
        work()
    except TestbedError as error:
        assert not RAW.search(str(error)), str(error)
        assert WHERE in str(error) and len(str(error)) < 4500


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", [cut, garbled, without_a_line, repeated])
def test_whatever_a_router_answers_is_figures_or_a_sentence(kind: str, change: Change) -> None:
    for seed in range(25 * TIMES):
        chance = random.Random(seed)
        shell = odd(shell_of(simulated(kind)[0]), change, chance)
        router: Router = named(kind, shell)
        configure, under_load = partial(router.configure, SIDES), partial(router.under_load, lambda: None)
        reading = (router.identify, router.facts, configure, router.clear, router.read, under_load, router.restore)
        for work in (*reading, router.link_states):
            sentence(work)


@given(st.text(max_size=200), st.sampled_from(sorted(BUILT_IN)))
def test_unrelated_text_has_no_counters(text: str, kind: str) -> None:
    router = make_router(kind, lambda command, limit: Result(text, "", 0, 0.0), ("eth1",))
    for key in router.description.commands.tables:
        with contextlib.suppress(TestbedError):
            assert not any(count for own in router.counts(key, {}, "eth1").values() for count in own.values())


@pytest.mark.parametrize("kind", ["vpp", "freebsd"])
def test_below_the_titles_of_a_table_there_are_only_rows(kind: str) -> None:
    table = with_examples(kind).commands.tables["links"]
    assert table.counts(table.example)
    for text in (f"{table.example}odd row\n", table.example.partition("\n")[2]):
        with pytest.raises(TestbedError, match="no row of it is"):
            table.counts(text)


def leaves(value: object, at: str = "") -> Iterator[tuple[str, object]]:
    """Each value that is known, with its place; of the entries of a list that is the list's."""
    if is_dataclass(value):
        value = {each.name: getattr(value, each.name) for each in fields(value) if each.name != "unread"}
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from leaves(part, f"{at}.{key}")
    elif isinstance(value, tuple):
        for part in value:
            yield from leaves(part, at)
    elif value not in (None, ""):
        yield at, value


def _within_a_line(text: str, chance: random.Random) -> str:
    found = cut(text, chance)
    return text if found.endswith("\n") or not found else found


def cut_answers(kind: str, times: int) -> Iterator[Router]:
    """Routers of whose answers some are cut at any place within a line."""
    whole = shell_of(simulated(kind)[0])
    for seed in range(times * TIMES):
        yield named(kind, odd(whole, _within_a_line, random.Random(seed)))


@pytest.mark.parametrize("kind", KINDS)
def test_facts_of_an_answer_that_is_cut_are_right_or_missing(kind: str) -> None:
    """But for its name and version, which are also from files that may lack a last line's end."""
    right = set(leaves(make_router(kind, shell_of(simulated(kind)[0]), ("eth1", "eth2")).facts()))
    for router in cut_answers(kind, 60):
        assert set(leaves(replace(router.facts(), os=None, version=None))) <= right


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_that_is_cut_gives_no_wrong_figure(kind: str) -> None:
    right = make_router(kind, shell_of(simulated(kind)[0]), ("eth1", "eth2")).read()
    for router in cut_answers(kind, 120):
        try:
            shown = router.read()
        except TestbedError as error:
            assert WHERE in str(error)
            assert "'" in str(error) or "/proc/" in str(error), str(error)
        else:
            assert replace(shown, raw=right.raw) == right
