"""What keeps TRex from starting on a machine is said before it is tried, with what to do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineproof.routers.base import Result
from lineproof.routers.host_reading import full_address, read_host_state
from lineproof.routers.local_shell import local_shell
from lineproof.testbed.trex.start_findings import StartFinding, StartPlan, start_findings
from lineproof_bench.shells.trex_host import HABITS
from support.trex_host import shell_of

CARDS = ("03:00.0", "0000:03:00.1")
HOME = "/opt/trex/v3.08"


def findings(*habits: str, interfaces: tuple[str, ...] = CARDS, **plan: object) -> tuple[StartFinding, ...]:
    state = read_host_state(shell_of(*habits), interfaces)
    return start_findings(state, StartPlan(HOME, interfaces, **plan))  # type: ignore[arg-type]


def test_a_machine_that_is_fit_needs_no_words() -> None:
    assert findings() == ()
    assert findings("held by linux") == ()  # TRex binds them itself, by vfio-pci


@pytest.mark.parametrize(
    ("habits", "plan", "stops", "refused", "words"),
    [
        (("in use",), {}, True, True, ["enp3s0f0) with the address 198.51.100.7/24", "ip addr flush dev enp3s0f0"]),
        (
            ("neighbours in linux",),
            {},
            True,
            True,
            ["0000:03:00.2", "./dpdk_nic_bind.py -u 0000:03:00.2 0000:03:00.3", "--unbind-unused-ports"],
        ),
        (("mellanox",), {}, True, True, ["OFED", "--no-ofed-check"]),
        (("no huge pages",), {}, False, False, ["0 MB of huge pages are free", "hugepagesz=1G hugepages=2"]),
        (("no huge pages in the kernel",), {}, True, False, ["no huge pages", "CONFIG_HUGETLBFS"]),
        (("little memory",), {}, True, False, ["0 MB of huge pages", "976 MB of memory are left"]),
        (
            ("held by linux", "secure boot", "no iommu"),
            {},
            True,
            False,
            ["no IOMMU", "Secure Boot", "not signed", "intel_iommu=on iommu=pt", "BIOS"],
        ),
        (
            ("held by linux", "secure boot", "no iommu option"),
            {},
            True,
            False,
            ["no 'iommu='", "Secure Boot", "--bind=vfio-pci 0000:03:00.0 0000:03:00.1"],
        ),
        (("held by linux", "no iommu"), {}, False, False, ["no IOMMU", "compiles", "BIOS"]),
        (("other server",), {}, True, False, ["process 4711: ./_t-rex-64 -i -c 4", "without 'prefix'"]),
        (("other server",), {"prefix": "two"}, False, False, ["process 4711"]),
        (("no lspci",), {}, True, False, ["lspci", "pciutils"]),
        (
            (),
            {"interfaces": ("03:00.0", "04:00.0")},
            True,
            False,
            ["'0000:04:00.0' is no network card", "0000:03:00.1"],
        ),
        ((), {"cores": 30}, True, False, ["needs 32 CPUs", "has 24", "'cores: 22' at most"]),
        ((), {"threads": (0, 1, 2, 99)}, True, False, ["CPU 99", "0 to 23"]),
    ],
)
def test_each_habit_is_named_with_its_remedy(
    habits: tuple[str, ...], plan: dict[str, object], stops: bool, refused: bool, words: list[str]
) -> None:
    (found,) = findings(*habits, **plan)  # type: ignore[arg-type]
    assert (found.stops, found.refused) == (stops, refused)
    for each in words:
        assert each in found.text, found.text


@pytest.mark.parametrize(
    ("habits", "plan"),
    [
        (("neighbours in linux",), {"extra": ("--unbind-unused-ports",)}),
        (("neighbours in linux",), {"interfaces": (*CARDS, "03:00.2", "03:00.3")}),
        (("mellanox",), {"extra": ("--no-ofed-check",)}),
        (("no huge pages",), {"low_end": True}),
        (("secure boot", "no iommu"), {}),  # vfio-pci holds the cards already
        (("in use", "no huge pages", "no lspci", "little memory"), {"interfaces": ("veth0", "veth1")}),
        (("in use", "no huge pages"), {"interfaces": ()}),  # the host's own configuration names the cards
    ],
)
def test_what_does_not_matter_is_not_said(habits: tuple[str, ...], plan: dict[str, object]) -> None:
    assert findings(*habits, **plan) == ()  # type: ignore[arg-type]


def test_memory_that_is_asked_for_counts() -> None:
    (found,) = findings(memory=20000)
    assert "8192 MB of huge pages are free there, and TRex wants 20000" in found.text


def test_a_machine_that_shows_nothing_has_no_findings() -> None:
    state = read_host_state(lambda command, limit: Result("", "sh: not found\n", 127, 0.0), CARDS)
    assert start_findings(state, StartPlan(HOME, CARDS)) == ()
    assert state.huge_pages is None and state.iommu is None and state.trex is None and state.secure_boot is None
    assert state.facts.unread


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=300), st.integers(0, 255))
def test_no_output_of_a_host_is_an_exception(text: str, status: int) -> None:
    def shell(command: str, limit: float) -> Result:
        count = command.count("@@lineproof")
        marks = "".join(f"{text}\n@@lineproof {index} {status}\n" for index in range(count))
        return Result(marks, "", 0, 0.0)

    start_findings(read_host_state(shell, CARDS), StartPlan(HOME, CARDS, threads=(0,)))


def test_every_habit_is_of_use() -> None:
    fit = read_host_state(shell_of(), CARDS)
    shown = {habit: read_host_state(shell_of(habit), CARDS) for habit in HABITS}
    assert [habit for habit, state in shown.items() if state == fit] == ["no configuration"]


@pytest.mark.slow
def test_this_machine_is_read() -> None:
    state = read_host_state(local_shell)
    assert state.cpus and state.available_kib and state.command_line and state.facts.cpu
    assert all(card.ids and card.slot for card in state.cards.values())


@pytest.mark.parametrize("name", ["03:00.0", "0000:03:00.0", "0000:03:00.0/1", "03:00.0/1"])
def test_a_pci_address_has_one_form(name: str) -> None:
    assert full_address(name) == "0000:03:00.0"
