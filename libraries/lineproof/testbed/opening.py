"""Opening and closing a testbed of any kind: the entry point of this package.

A testbed that is had is nobody else's until it is given back. A run of hardware has a lock for each of the generator's
ports, for others of its user on this machine; a lock ends with its process, however that ends. Runs elsewhere are seen
by the ports that they own (``session``), or by labgrid, which lends testbeds to a whole lab.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from ..command_values import facts_as, facts_of, summarised
from ..core.router_facts import NicFacts, RouterFacts
from ..errors import ConfigError, TestbedError
from ..files import not_written
from ..generators.site import GeneratorEndpoint, connect_trex
from ..generators.trex.driver import TrexSettings
from ..platforms import Platform, RouterSetup
from ..routers.linux import PCI_ADDRESS, card_facts
from ..simulation import InjectedFault
from ..system.children import bench_command
from ..system.command_line import Answers, ShellCommands
from ..system.folders import ELSEWHERE, lock_within, runtime_folder
from ..system.login import ENVIRONMENT, Login, Secrets
from ..system.ssh_keys import make_key, write_known_hosts
from ..system.ssh_shell import Shell, SshShell, plain_text
from ..units import duration_text
from ..visible import visible
from .lab import LabPlace
from .process import NO_ROUTER, Belongings, TestbedFacts, TestbedProcess
from .settings import HardwareSettings, SimulatedSettings, Testbed, next_hops
from .trex_start import start_over_ssh
from .waiting_time import Say, WaitProgress, silent


@dataclass(eq=False)
class OpenTestbed:
    """An open testbed. :meth:`close` it; if its owner is killed, it closes by itself within seconds.

    ``belongings``: what was started for it, and what is given back when it closes. ``host``: of its generator, as it
    was read before anything was started; None where there is no way to it. ``lab``: labgrid's place that it is, None if
    it is none. ``say`` prints a line while something is waited for. ``logs``: after :meth:`close`, by process, what
    those that it started wrote to their logs, if anything: the last MB; ``failures``: what could not be taken down in
    order, in words.
    """

    facts: TestbedFacts
    belongings: Belongings = field(default_factory=Belongings)
    host: GeneratorHost | None = None
    lab: LabPlace | None = None
    say: Say = silent
    logs: dict[str, str] = field(default_factory=dict)
    failures: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        """Return whether all that was started for it runs."""
        return all(program.status() is None for program in self.belongings.programs)

    def problems(self) -> tuple[str, ...]:
        """Return a sentence for each process that ended since the opening, and why the place is not ours."""
        ended = [problem for program in self.belongings.programs for problem in program.problems()]
        return (*ended, *(self.lab.problems() if self.lab else ()))

    def cause(self, fault: InjectedFault) -> None:
        """Let *fault* happen on a simulated testbed, in addition to earlier ones. Raises TestbedError."""
        for program in self.belongings.programs:
            program.ask({"fault": fault.model_dump(by_alias=True, exclude_none=True)})

    def close(self) -> None:
        """Stop the testbed's processes, remove what was made for it, and give it back. Harmless when repeated."""
        logs = self.belongings.logs()
        self.logs = self.logs or {name: visible(plain_text(text)) for name, text in logs.items()}
        self.failures += self.belongings.close()

    def __enter__(self) -> OpenTestbed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_testbed(
    testbed: Testbed,
    platform: Platform,
    software: str,
    *,
    platform_file: Path,
    ports: tuple[int, int] = (0, 0),
    bypass: bool = False,
    secrets: Secrets = ENVIRONMENT,
    setups: tuple[RouterSetup, ...] = (),
    lab: LabPlace | None = None,
    held: HeldTestbed | None = None,
    say: Say = silent,
) -> OpenTestbed:
    """Wait until this testbed is free, start it, and wait until it is ready.

    ``platform_file`` is the file of *platform*; *ports*: TCP ports of the embedded server's requests and events (0:
    free ones). *bypass*: without a router, the generator's ports connected to each other (on hardware a person does
    that). *secrets*: of the logins in the testbed file. *setups*: what a study's commands may make of a simulated
    router; its shell knows these commands beside its own. *lab*: labgrid's place, where a pool has acquired it. *held*:
    the testbed, where its owner has it for several sessions; it is not given back then. Raises ConfigError for a
    software that the platform does not have, and TestbedError, with everything taken down again, if the testbed cannot
    be started.
    """
    if software not in platform.software:
        raise ConfigError(f"no software '{software}' here; known: {', '.join(platform.software)}", platform_file)
    belongings, host, box = Belongings(), None, (platform, software)
    try:
        if held is None:
            held = HeldTestbed(testbed, say, lab)
            belongings.later(held.close)
        elif held.lab and (problems := held.lab.problems()):  # no longer ours: nothing may be started on it
            raise TestbedError("; ".join(problems))
        if isinstance(testbed, HardwareSettings):
            facts = hardware_facts(testbed, *box, secrets)
            at, server = facts.generator, testbed.trex
            host = read_generator_host(at.login)
            if at.login and server and server.start:
                start_over_ssh(belongings, at.login, at.home, server.start, server.address, server.sync_port)
        elif isinstance(testbed, SimulatedSettings):
            facts = start_simulated(testbed, *box, platform_file, belongings, ports, bypass=bypass, setups=setups)
        else:
            from .netns import start_netns

            facts = start_netns(testbed, *box, belongings, ports, bypass=bypass)
    except BaseException:
        belongings.close()
        raise
    return OpenTestbed(facts, belongings, host, held.lab, say)


ROLE = "the generator's host"


@dataclass(frozen=True, slots=True)
class GeneratorHost:
    """The facts that were read; ``problem``: why nothing was."""

    facts: RouterFacts = field(default_factory=RouterFacts)
    problem: str = ""


def read_generator_host(login: Login | None) -> GeneratorHost | None:
    """Return what the generator's host shows; None where the testbed file has no way to it. Never raises."""
    if login is None:
        return None
    try:
        with closing(SshShell(login, who=ROLE)) as shell:
            shell.open()
            return GeneratorHost(read_host(shell))
    except TestbedError as error:
        return GeneratorHost(problem=str(error))


_DEVICES = (
    "grep -rsHE '^(DRIVER|PCI_CLASS|PCI_ID|INTERFACE)=' /sys/devices --include=uevent --exclude-dir=system"
    " --exclude-dir=virtual"
)


def read_host(shell: Shell) -> RouterFacts:
    """Return the facts of the machine behind *shell*, with every network card by its PCI address.

    Never raises: what is not read is missing, with the reason in ``unread``.
    """
    answers = Answers(ShellCommands(shell))
    machine = answers.facts(facts_of("linux", "machine"))
    devices: dict[str, dict[str, str]] = {}
    row = rf"^(/sys/devices/\S*/({PCI_ADDRESS}))(/(?:virtio\d+/)?net/[\w.-]+)?/uevent:([A-Z_]+)=(.*)$"
    for folder, address, port, name, value in re.findall(row, answers.ask(_DEVICES)[_DEVICES], re.MULTILINE):
        device = devices.setdefault(address, {"folder": folder, "INTERFACE": ""})
        if not port:
            device[name] = value
        elif name == "INTERFACE":
            device[name] += f"{value} "
    # class 02: network controllers (PCI Code and ID Assignment, 1.3)
    is_card = {name: re.fullmatch(r"2[0-9A-F]{4}", device.get("PCI_CLASS", "")) for name, device in devices.items()}
    nics = list[NicFacts]()
    # a card with virtual functions may have hundreds
    for address in [name for name in sorted(devices) if is_card[name]][:64]:
        card = devices[address]
        link = answers.facts(facts_of("linux", "link", folder=card["folder"]))
        information = "\n".join(answers.ask(*(f"ethtool -i {name}" for name in card["INTERFACE"].split())).values())
        firmware = summarised(re.findall(r"^firmware-version: *(\S.*)", information, re.MULTILINE))
        own = {"model": card.get("PCI_ID", "").lower(), "driver": card.get("DRIVER"), "firmware": firmware}
        known = {name: value for name, value in own.items() if value} | link
        nics.append(card_facts(address, known, machine.get("_cards", ""), address))
    return facts_as(RouterFacts, machine, workers=None, nics=tuple(nics), unread=answers.unread)


def hardware_facts(
    testbed: HardwareSettings, platform: Platform, software: str, secrets: Secrets = ENVIRONMENT
) -> TestbedFacts:
    """Return the facts in the testbed's file."""
    interfaces = platform.software[software].interfaces
    sides = tuple(side.of_router(name) for name, side in zip(interfaces, testbed.cabled_sides, strict=False))
    return TestbedFacts(
        generator=_endpoint(testbed, secrets),
        router=NO_ROUTER if testbed.router is None else testbed.router.with_secrets(secrets),
        sides=sides,
        label=f"{platform.description}, {software}, on {testbed.testbed}",
    )


def _endpoint(testbed: HardwareSettings, secrets: Secrets) -> GeneratorEndpoint:
    generator, other = testbed.trex, testbed.generator
    ports = tuple(range(other.port_count)) if generator is None else generator.ports
    hops = next_hops(ports, testbed.cabled_sides)
    if generator is None:
        return GeneratorEndpoint(ports, other.connect, hops, secrets=secrets)
    settings = TrexSettings(
        generator.address,
        pins_cores=generator.core_mask == "pin",
        outlives_run=generator.start is None,
        **generator.model_dump(include={"sync_port", "async_port", "ports", "force", "client", "promiscuous"}),
    )
    login = generator.ssh.with_secrets(secrets) if generator.ssh else None
    return GeneratorEndpoint(ports, connect_trex, hops, settings, login, generator.trex_home or "")


HOST = "127.0.0.1"
USER = "lineproof"

HANDED_ON = {"rx_queues", "nic", "seed", "set_up", "noise", "router_habits", "faults", "habits", "clock_speed"}
"""The keys of a testbed's file that are the bench's, too."""


def start_simulated(
    settings: SimulatedSettings,
    platform: Platform,
    software: str,
    platform_file: Path,
    belongings: Belongings,
    ports: tuple[int, int],
    *,
    bypass: bool,
    setups: tuple[RouterSetup, ...],
) -> TestbedFacts:
    """Start the one process of a simulated testbed; returns its facts. Raises TestbedError.

    ``ports``: TCP ports of the TRex server, 0 for free ones. ``bypass``: no router, the server's
    ports are cabled to each other. ``setups``: what a study's commands make of the router.
    """
    folder, key = belongings.folder, belongings.folder / "client_key"
    shells = {"user": USER, "authorized_key": make_key(key)}
    process = belongings.keep(
        TestbedProcess(
            "server",
            bench_command(),
            {
                **settings.model_dump(mode="json", by_alias=True, exclude_none=True, include=HANDED_ON),
                "backend": "model",
                "platform_file": str(platform_file.resolve()),
                "software": software,
                "cabled": list(platform.ports)[: 2 * settings.pairs],
                "bypass": bypass,
                "setups": [setup.model_dump() for setup in setups],
                "next_hops": [[side.peer, side.address.partition("/")[0]] for side in settings.cabled_sides],
                "rpc_port": ports[0],
                "pub_port": ports[1],
                "shells": None if bypass else shells,
                "folder": str(folder),
            },
        )
    )
    ready, router = process.facts, NO_ROUTER
    if not bypass:
        known_hosts = folder / "known_hosts"
        write_known_hosts(known_hosts, HOST, ready["ssh_port"], ready["host_key"])
        router = Login(address=HOST, port=ready["ssh_port"], user=USER, key=key, known_hosts=known_hosts, sudo=True)
    interfaces = platform.software[software].interfaces
    ends = zip(interfaces, settings.cabled_sides, ready["ports"], strict=False)
    sides = tuple(side.of_router(name, port["mac"]) for name, side, port in ends)
    numbers = tuple(range(len(sides)))
    server = TrexSettings(
        HOST,
        ready["rpc_port"],
        ready["pub_port"],
        numbers,
        outlives_run=False,
        **settings.model_dump(include={"client", "clock_speed", "promiscuous"}),
    )
    return TestbedFacts(
        generator=GeneratorEndpoint(numbers, connect_trex, next_hops(numbers, settings.cabled_sides), server),
        router=router,
        sides=sides,
        label=f"{platform.description}, {software}",
        clock_speed=settings.clock_speed,
        simulated=True,
    )


POLL = 0.2
"""Seconds between two tries."""


class HeldTestbed:
    """labgrid's place that a testbed is, and the locks of hardware; :meth:`close` gives it back.

    Each session has its own, or several have one, one after another. ``lab``: None where labgrid does not lend it.
    """

    def __init__(self, testbed: Testbed, say: Say = silent, lab: LabPlace | None = None) -> None:
        """Wait until *testbed* is free, and have it. *lab*: its place, where a pool has acquired it.

        Raises TestbedError, with everything given back.
        """
        self._locks = ExitStack()
        if lab is None and testbed.lab is not None:
            lab = LabPlace(testbed.lab, testbed.testbed, say)
        self.lab = lab
        try:
            if isinstance(testbed, HardwareSettings):
                self._wait(testbed, say)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give it back. Harmless when repeated."""
        self._locks.close()
        if self.lab:
            self.lab.close()

    def _wait(self, testbed: HardwareSettings, say: Say) -> None:
        limit = testbed.wait_for_testbed
        progress = WaitProgress(f"testbed '{testbed.testbed}'", limit, say)
        while user := self._lock_all(testbed.generator.claimed):
            if progress.is_over:
                if not limit:
                    return  # it goes on beside another run, whose ports the generator then refuses
                raise TestbedError(
                    f"testbed '{testbed.testbed}' was in use for {duration_text(limit)}: {user}; run later, or give"
                    " 'wait_for_testbed' in its file more time"
                )
            progress.note(user)
            time.sleep(POLL)

    def _lock_all(self, names: Sequence[str]) -> str:
        """Lock all or nothing; returns who has one of them, "" if nobody."""
        with ExitStack() as locks:
            for name in names:
                path = runtime_folder() / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.in-use"
                try:
                    file = locks.enter_context(path.open("ab"))
                except OSError as error:
                    raise not_written(path, error, ELSEWHERE) from error
                if not lock_within(file.fileno()):
                    return f"{name} is in use by another run on this machine"
            self._locks = locks.pop_all()
        return ""
