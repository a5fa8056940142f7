"""Commands of the simulated shells: a line is one command, and those of studies are done and undone once."""

from __future__ import annotations

import shlex
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from lineproof.platforms import RouterSetup, read_platform
from lineproof.routers import make_router
from lineproof.studies.study import Variant, load_study
from lineproof_bench.model.backend import ModelBackend, ModelSettings
from lineproof_bench.model.schema import router_model
from lineproof_bench.shells import freebsd
from lineproof_bench.shells.machine import Machine, Memory, StudyCommands, words_of
from support.fake_router import shell_of, simulated
from support.model_bench import PROJECT, HandClock


@given(st.lists(st.text("ab $'\"\\;|&>?#*é", min_size=1, max_size=12), min_size=1, max_size=5))
def test_words_are_split_as_a_shell_does(words: list[str]) -> None:
    assert words_of(shlex.join(words)) == words


@given(st.text(max_size=40))
def test_any_line_is_answered(text: str) -> None:
    machine, _ = simulated("vpp")
    assert 0 <= machine.run(text).status <= 255


PF = RouterSetup.model_validate(
    {
        "commands": [
            {"do": "kldload pf", "undo": "kldunload pf"},
            {"do": "pfctl -f -", "stdin": "pass no state\n", "undo": "pfctl -F rules"},
            {"do": "pfctl -e", "undo": "pfctl -d"},
        ],
        "configured": {"firewall": "pf", "stateful": False},
    }
)
MASK = RouterSetup.model_validate(
    {
        "commands": [{"do": "sysctl kern.random.harvest.mask=511", "undo": "sysctl kern.random.harvest.mask=351"}],
        "configured": {"entropy": True},
    }
)


def machine(*setups: RouterSetup) -> tuple[Machine, ModelBackend]:
    box = read_platform(PROJECT.platforms, "freebsd_apu2")
    backend = ModelBackend(box, "igb_tuned", HandClock(), ModelSettings(setups=setups))
    software = freebsd.software()
    override = StudyCommands([setup.model_dump() for setup in setups], software).run
    return Machine(software, lambda: backend, Memory(packet_filter=True), override), backend


def test_a_command_is_done_once_and_undone_once() -> None:
    shell, backend = machine(PF)
    # other commands, and other rules, are not known
    assert shell.run("kldload ipfw").status and shell.run("pfctl -f -", "block\n").status
    assert backend.state().configuration.done == ()
    assert shell.run("kldunload pf").stderr == "kldunload: No such file or directory\n"
    assert shell.run("kldload pf").status == 0
    assert shell.run("kldload pf").stderr == "kldload: File exists\n"
    assert shell.run("kldunload pf").status == 0
    assert shell.run("kldunload pf").status == 1


def test_what_is_set_can_be_read() -> None:
    shell, _ = machine(MASK)
    name = "kern.random.harvest.mask"
    assert shell.run(f"sysctl -n {name}").stdout == "351\n"
    assert shell.run(f"sudo -n {MASK.commands[0].do}").status == 0
    assert shell.run(f"sudo -n sysctl -n {name}").stdout == "511\n"
    assert shell.run(f"sysctl {name}").stdout == f"{name}: 511\n"
    assert shell.run(MASK.commands[0].undo).status == 0
    assert shell.run(f"sysctl -n {name}").stdout == "351\n"
    assert shell.run("sysctl -n kern.random.other").status == 1


def test_what_the_machine_has_on_before_the_study_is_its_own() -> None:
    shell, backend = machine(PF)
    assert "Enabled" in shell.run("pfctl -s info").stdout
    assert shell.run("pfctl -d").status == 0
    assert "Disabled" in shell.run("pfctl -s info").stdout
    assert backend.state().configuration.done == ()


def variants() -> list[tuple[str, str, Variant]]:
    studies = [load_study(path) for path in sorted(PROJECT.studies.glob("freebsd_*.yaml"))]
    return [(study.platform_of(name), name, own) for study in studies for name, own in study.variants.items()]


def test_every_variant_of_the_freebsd_studies_is_accepted_and_undone() -> None:
    everything = variants()
    boxes = {name: read_platform(PROJECT.platforms, name) for name, _, _ in everything}
    tried = {(box, own.software, own.setup.model_dump_json()): own for box, _, own in everything}
    assert len(everything) > 400
    for (box, software, _), own in tried.items():
        assert software is not None and software in boxes[box].software
        router_model(boxes[box], software, own.rx_queues, configured=own.configured)
        backend = ModelBackend(boxes[box], software, HandClock(), ModelSettings(setups=(own.setup,)))
        override = StudyCommands([own.setup.model_dump()]).run
        shell = Machine(freebsd.software(), partial(lambda same: same, backend), Memory(), override=override)
        router = make_router("freebsd", shell_of(shell))
        router.apply(own.commands)
        assert bool(backend.state().configuration.done) == bool(own.commands)
        assert router.withdraw() == ""
        assert backend.state().configuration.done == ()
