"""The plan of a run: platform, testbed, goal and traffic words, read from their files and checked before any start."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..ceilings import Calibration, Card, read_calibration, read_cards
from ..core.deciding import Budget
from ..core.goal import Goal, read_goal
from ..core.quantity import Promise, Requirement, TrafficWords
from ..core.sentence import parse
from ..core.traffic.catalogue import Catalogue, ProgramLoader, replaced_entries
from ..core.traffic.profiles import Traffic
from ..core.trial import Load
from ..core.units import Unit
from ..errors import ConfigError, SentenceError
from ..generators.base import Abilities, Method
from ..generators.kinds import refusal
from ..generators.site import GeneratorSettings
from ..generators.streams import MOST_PROBE_GROUPS, probe_shares
from ..generators.trex.profile_loader import TrexProfileLoader
from ..platforms import Platform, RouterSetup, Software, named_file, read_platform
from ..project import KINDS, Layers, Project
from ..routers import BUILT_IN, described, router_class
from ..routers.description import RouterDescription, read_description
from ..routers.none import WHY_UNREAD
from ..system.login import ENVIRONMENT, Secrets
from ..testbed.settings import HardwareSettings, Misfit, SimulatedSettings, Testbed, network_misfits, read_testbed
from ..units import si

MIN_FRAMES = 100
"""The fewest frames of a trial: fewer prove nothing about a router."""

PROBE_SHARE = 0.1
"""The most of a load that is sent as probe frames."""

NAME_TESTBED = "name the testbed that the router is in: -v TESTBED:NAME"


@dataclass(frozen=True)
class Plan:
    """Everything that is known before anything starts."""

    project: Project
    platform: Platform
    software_name: str
    software: Software
    testbed: Testbed
    goal: Goal
    catalogue: Catalogue
    calibration: Calibration | None = None
    """The calibration of the testbed's generator, if there is one."""

    cards: tuple[Card, ...] = ()
    """The files on generators' network cards."""

    command_file: RouterDescription | None = None
    """The description of a router that has no Python of its own."""

    secrets: Secrets = ENVIRONMENT
    """The secrets of the logins in the testbed's file."""

    setups: tuple[RouterSetup, ...] = ()
    """Changes that a study's commands may make to the router: a simulated one knows these commands beside its own."""

    calibrations: Path | None = None
    """The folder of the calibration."""

    @classmethod
    def read(
        cls,
        project: Project,
        platform: str,
        software: str | None,
        testbed: str,
        goal: str,
        calibrations: Path | None = None,
        load_program: ProgramLoader | None = None,
        *,
        instead: str = "",
    ) -> Plan:
        """Read all files. *calibrations*: the folder that may hold one of this testbed; None: none is read.

        *load_program* loads profiles in TRex's format; None: with the testbed's client. *instead*: as of
        :func:`.check_simulable`.

        Raises ConfigError naming file, line and remedy.
        """
        box = read_checked_platform(project, platform)
        name = software or next(iter(box.software))
        if name not in box.software:
            raise ConfigError(
                f"platform '{platform}' has no software '{name}'; known: {', '.join(box.software)}",
                project.platforms / f"{platform}.yaml",
            )
        settings, cards = read_testbed(project.testbeds, testbed), read_cards(project.generators)
        box = box.cabled(settings.cabled, project.testbeds / f"{testbed}.yaml")
        interfaces = box.software[name].interfaces
        if min(len(interfaces), len(box.ports)) < 2 * settings.pair_count:
            raise ConfigError(
                f"'{name}' has {len(interfaces)} interfaces ({', '.join(interfaces)}) of the ports"
                f" {', '.join(box.ports)}, and testbed '{testbed}' is cabled to {2 * settings.pair_count}; expected as"
                " many of both, in the order of the cables",
                project.platforms / f"{platform}.yaml",
            )
        command_file = _command_file(project, box.software[name])
        check_login(settings, box.software[name], project.testbeds / f"{testbed}.yaml", command_file)
        if isinstance(settings, SimulatedSettings):
            check_simulable(project, box, name, testbed, instead)
        if isinstance(settings, HardwareSettings) and settings.generator.card is not None:
            named_file(project.generators, settings.generator.card, "card")
        terms = read_goal(project.goals, goal)
        of_trex = settings.trex if isinstance(settings, HardwareSettings) else settings
        loader = load_program or TrexProfileLoader(of_trex.client if of_trex else "")
        catalogue = Catalogue.read(project.profiles, loader)
        calibration = read_calibration(calibrations, testbed, platform) if calibrations else None
        read = (project, box, name, box.software[name], settings, terms, catalogue, calibration, cards, command_file)
        return cls(*read, calibrations=calibrations)

    def load_for(self, requirement: Requirement) -> Load:
        """Return the load that a sentence is judged at, of each port: threshold, named one, or maximum."""
        return requirement.quantity.load(requirement, self.link_bps(requirement.pairs), self.maximum_load(requirement))

    def maximum_load(self, traffic: Traffic) -> Load:
        """Return the testbed's maximum load of *traffic*, per port."""
        line = traffic.profile.line_rate_pps(self.link_bps(traffic.pairs))
        return Load(line * self.testbed.maximum_load_percent / 100)

    def link_bps(self, pairs: int) -> float:
        """Return the line rate of each of the first *pairs* port pairs in bit/s: the slower end of each direction."""
        return min(self.speeds(pairs))

    def line_text(self, pairs: int) -> str:
        """Return which line rate per cent are of, where the ports have several speeds; "": they have one."""
        speeds = sorted({speed / 1e9 for speed in self.speeds(pairs)})
        if len(speeds) == 1:
            return ""
        return f"line rate {speeds[0]:g} Gbit/s, the slower of {' and '.join(f'{speed:g}' for speed in speeds)}"

    @property
    def fastest(self) -> float:
        """The fastest port's speed in bit/s: a limit of the generator beyond it is none."""
        return max(self.speeds(self.testbed.pair_count))

    def speeds(self, pairs: int) -> list[float]:
        """Return the speed of each router port of the first *pairs* port pairs in bit/s."""
        return list(self.platform.ports.values())[: 2 * pairs]

    @property
    def replaced(self) -> tuple[str, ...]:
        """A sentence for each file or word of the project that takes the place of one that comes with Lineproof."""
        used = {"platforms": self.platform.platform, "testbeds": self.testbed.testbed, "goals": self.goal.goal}
        used["shells"], used["programs"] = self.software.shell, self.testbed.generator_type
        return tuple(replaced_files(self.project, used))

    @property
    def uncounted(self) -> str:
        """Why the frames that the router itself counts are not read; "": they are."""
        if self.software.is_black_box:
            return WHY_UNREAD
        if (file := self.command_file) and not (file.commands.counters or file.commands.tables):
            return f"variables/shells/{file.shell}.yaml describes no 'counters', so that none are read"
        return ""

    @property
    def calibrate(self) -> str:
        """The command that measures what the generator itself loses."""
        return f"lineproof calibrate {self.testbed.testbed} --platform {self.platform.platform}"

    @property
    def power_text(self) -> str:
        """Where the power comes from, in words."""
        if (meter := self.testbed.power) is None:
            return f"the power is {self.platform.watts:g} W as the platform's file declares it, not measured"
        return (
            f"measured by {meter.text}, which covers {meter.covers}, ± {meter.accuracy:g} % of the reading and"
            f" {meter.resolution:g} W steps"
        )

    @property
    def probe(self) -> Traffic:
        """Return what is sent slowly before anything is judged, through all pairs."""
        return _probe(self.testbed, self.catalogue)

    def misfits(self, requirements: Iterable[Requirement] = ()) -> list[Misfit]:
        """Return the addresses of the testbed's file that do not fit the probe or *requirements*."""
        misfits = list(misfits_of(self.testbed, self.catalogue))
        for item in requirements:
            misfits += network_misfits(self.testbed, item.profile, item.bidirectional, item.pairs)
        return list({(item.side, item.key): item for item in reversed(misfits)}.values())[::-1]

    def misfit_words(self, misfit: Misfit) -> str:
        """Return *misfit* in words, with file and line."""
        return str(misfit.located(self.project.testbeds, self.testbed.testbed))

    @property
    def card(self) -> str | None:
        """The generator's card, if the testbed names it."""
        return self.testbed.generator.card if isinstance(self.testbed, HardwareSettings) else None

    @property
    def warm_up(self) -> float:
        """Seconds of traffic before a sentence's first trial."""
        return self.goal.warm_up if self.testbed.warm_up is None else self.testbed.warm_up

    @property
    def clock_speed(self) -> float:
        """Seconds of the testbed's clock per second of real time."""
        return self.testbed.clock_speed if isinstance(self.testbed, SimulatedSettings) else 1.0

    @property
    def link_wait(self) -> float:
        """Seconds of real time that links may take to come up."""
        return self.testbed.link_wait / self.clock_speed

    def budget(self, requirements: Iterable[Requirement]) -> Budget:
        """Return the budget of all *requirements* together."""
        meter = self.testbed.power
        # of a trial at least, and before a sentence's first
        seconds = (meter.trial_seconds(self.clock_speed), meter.idle_seconds()) if meter else ()
        return sum(
            (
                Budget.of(self._promise(one), self.warm_up, *(seconds if "power" in one.quantity.needs else ()))
                for one in requirements
            ),
            Budget(),
        )

    def requirement(self, sentence: str) -> Requirement:
        """Return the sentence, parsed; the ports can carry it, and the goal decide it. Raises SentenceError."""
        measured = self.measurable(sentence)
        self._check_decidable(measured)
        return measured

    def measurable(self, sentence: str) -> Requirement:
        """Return the sentence, parsed; what it asks for can be measured here. Raises SentenceError."""
        requirement = parse(sentence, self.catalogue)
        sentence = requirement.sentence
        if requirement.threshold.unit is Unit.PPS_PER_CORE:
            if self.software.workers is None:
                raise SentenceError(
                    f"'{sentence}': how many cores forward is not known; expected 'workers' of {self.software_name} in"
                    f" the file of platform '{self.platform.platform}'"
                )
            requirement = requirement.on_cores(self.software.workers)
        self.check_measurable(requirement)
        return requirement

    def check_measurable(self, requirement: Requirement) -> None:
        """Raise SentenceError where what *requirement* asks for cannot be measured here."""
        sentence = requirement.sentence
        self.check_pairs(requirement)
        self.check_generator(requirement)
        requirement.check(self.link_bps(requirement.pairs))
        promise = self._promise(requirement)
        load = self.load_for(requirement).pps
        frames = load * promise.quantity.trial_seconds(promise)
        if frames < MIN_FRAMES:
            raise SentenceError(
                f"'{sentence}': a trial of goal '{self.goal.goal}' would be {frames:.3g} frames, which prove nothing;"
                f" expected a load of at least {si(load * MIN_FRAMES / frames, 'pps')}"
            )
        if "probes" in requirement.quantity.needs:
            try:
                sizes = len(probe_shares(requirement.profile))
            except ValueError as error:
                raise SentenceError(f"'{sentence}': {error}") from None
            if sizes * (ports := requirement.directions) > MOST_PROBE_GROUPS:
                raise SentenceError(
                    f"'{sentence}': probe frames of {sizes} sizes from {ports} ports are {sizes * ports} packet groups;"
                    f" expected at most {MOST_PROBE_GROUPS}"
                )
        if (
            "runtime" in requirement.quantity.needs
            and not router_class(self.software.shell, self.command_file).has_runtime
        ):
            raise SentenceError(
                f"'{sentence}': {requirement.threshold.unit.value} are read from VPP; {self.software_name} shows none"
            )
        self._check_power(requirement)

    def _promise(self, requirement: Requirement) -> Promise:
        try:
            return requirement.promise(self.goal, self.load_for(requirement), self.link_bps(requirement.pairs))
        except ValueError as error:
            raise SentenceError(f"'{requirement.sentence}': {error}") from None

    def _check_decidable(self, requirement: Requirement) -> None:
        """Raise SentenceError where the goal's trials could never decide *requirement*."""
        sentence, goal, promise = requirement.sentence, self.goal, self._promise(requirement)
        if goal.bad_share is None:
            raise SentenceError(
                f"'{sentence}': goal '{goal.goal}' is for searches and judges nothing; expected another one, for"
                " example '-v GOAL:standard'"
            )
        if promise.soak and promise.soak < goal.fewest_trials:
            raise SentenceError(
                f"'{sentence}': {requirement.duration_sum:g} s are fewer trials than a PASS of goal '{goal.goal}'"
                f" takes; expected 'for' at least {goal.fewest_trials * goal.final_trial_duration:g} s"
            )
        if promise.soak and goal.runs > 1:
            raise SentenceError(
                f"'{sentence}': a sentence with 'for' is judged in one run, and goal '{goal.goal}' has 'runs:"
                f" {goal.runs}'; expected another goal"
            )
        self._check_probes(promise, requirement)

    def _check_probes(self, promise: Promise, requirement: Requirement) -> None:
        """Raise SentenceError where a trial has no room for the probe frames that its figure takes."""
        load = self.load_for(requirement).pps
        seconds = promise.quantity.trial_seconds(promise)
        needed, room = self.probes_needed(requirement), math.floor(PROBE_SHARE * load * seconds)
        if needed <= room:
            return
        sentence, word = requirement.sentence, requirement.quantity.word
        if math.isinf(needed):
            least = f"{requirement.threshold.number:g} {requirement.threshold.unit.value}"
            raise SentenceError(f"'{sentence}': no sample shows that a router {word} {least}; expected more than that")
        remedies = "longer trials" if requirement.statistic is None else "longer trials or a lower percentile"
        least_load = si(1.001 * needed / PROBE_SHARE / seconds, "pps", 4)
        raise SentenceError(
            f"'{sentence}': a trial of {seconds:g} s has room for {room} of the {needed:.0f} probe frames that goal"
            f" '{self.goal.goal}' needs; expected at least {least_load} into each port, {remedies}"
        )

    def probes_needed(self, requirement: Requirement) -> float:
        """Return the probe frames of a trial without which it can never count for the router; 0: it needs none."""
        if "probes" not in requirement.quantity.needs:
            return 0
        return requirement.quantity.probes(requirement, 1 - (self.goal.bad_share or 0.0))

    @property
    def abilities(self) -> Abilities:
        """Return what the testbed's generator can do."""
        return abilities_of(self.testbed)

    def check_generator(self, traffic: TrafficWords) -> None:
        """Raise SentenceError if *traffic*, or what is asked of it, needs more than the testbed's generator can do."""
        needs = traffic.quantity.needs if isinstance(traffic, Requirement) else frozenset()
        abilities = {"probes": "latency", "changing load": "live"}
        more = [ability for need, ability in abilities.items() if need in needs]
        self._refuse_lacking(
            f"'{traffic.sentence}'",
            lambda able: able.lacks(traffic.profile, traffic.bidirectional, traffic.pairs, *more),
        )

    def check_method(self, method: Method) -> None:
        """Raise SentenceError if *method* needs what the testbed's generator does not have.

        A switch that counts the frames as well stands in for counts of the generator's own.
        """
        generator = getattr(self.testbed, "generator", None)
        counted = method.ability == "own_counts" and getattr(generator, "switch", None) is not None
        if not counted:
            self._refuse_lacking(method.words, lambda able: able.lacks_of(method.ability))

    def _refuse_lacking(self, asked: str, lacks: Callable[[Abilities], tuple[str, ...]]) -> None:
        if lacks(self.abilities):
            refused = refusal(self.testbed.generator_type, lacks, self.project.programs)
            raise SentenceError(f"{asked}: {refused} (testbed '{self.testbed.testbed}')")

    def _check_power(self, requirement: Requirement) -> None:
        """Raise SentenceError where nothing says how much power the router draws."""
        quantity = requirement.quantity
        if "power" not in quantity.needs or self.testbed.power is not None:
            return
        needs_meter = quantity.needs_meter(requirement.threshold.unit)
        if needs_meter or self.platform.watts is None:
            declared = "" if needs_meter else ", or 'watts' in the platform's, as declared power"
            raise SentenceError(
                f"'{requirement.sentence}': energy needs a power meter; expected the key 'power' in the testbed's"
                f" file{declared}"
            )

    def check_pairs(self, traffic: TrafficWords) -> None:
        """Raise SentenceError if *traffic* needs more pairs of ports than there are, or pairs of several line rates."""
        count = self.testbed.pair_count
        if traffic.pairs > count:
            is_hardware = isinstance(self.testbed, HardwareSettings)
            key = f"{2 * traffic.pairs} 'ports' of the generator" if is_hardware else f"'pairs: {traffic.pairs}'"
            raise SentenceError(
                f"'{traffic.sentence}': testbed '{self.testbed.testbed}' has {count} pair{'s' * (count > 1)} of ports;"
                f" expected fewer, or {key} in its file and {2 * traffic.pairs} 'ports' of the platform"
            )
        speeds = self.speeds(traffic.pairs)
        lines = sorted({min(both) / 1e9 for both in zip(speeds[::2], speeds[1::2], strict=True)})
        if len(lines) > 1:
            raise SentenceError(
                f"'{traffic.sentence}': its {traffic.pairs} pairs of ports have line rates of"
                f" {' and '.join(f'{line:g}' for line in lines)} Gbit/s, and each is to carry the same; expected"
                " fewer pairs, or pairs of one line rate first in 'cabled' of the testbed's file"
            )


def read_checked_platform(project: Project, name: str) -> Platform:
    """Return the platform *name*, whose routers take what is to be tuned. Raises ConfigError."""
    box = read_platform(project.platforms, name)
    for key, software in box.software.items():
        own, asked = _command_file(project, software), sorted(software.tuning.model_fields_set)
        # of most platforms nothing is asked, and one of our own descriptions takes 10 ms to read
        takes = (own or described(software.shell)).tuning if asked else {}
        if wrong := [setting for setting in asked if setting not in takes]:
            raise ConfigError(
                f"'tuning' of '{key}' has {', '.join(wrong)}, which no run sets on a router of 'shell:"
                f" {software.shell}'; expected {' or '.join(sorted(takes)) or 'none'}, and the others set up by hand",
                project.platforms / f"{name}.yaml",
            )
    return box


def _command_file(project: Project, software: Software) -> RouterDescription | None:
    own = project.shells.own / f"{software.shell}.yaml"
    return read_description(project.shells, software.shell) if own.exists() or software.shell not in BUILT_IN else None


def abilities_of(testbed: Testbed) -> Abilities:
    """Return what the generator of *testbed* can do."""
    generator = None if isinstance(testbed, SimulatedSettings) else testbed.generator
    return generator.abilities if isinstance(generator, GeneratorSettings) else Abilities()


def _probe(testbed: Testbed, catalogue: Catalogue) -> Traffic:
    able = abilities_of(testbed).can
    profile = catalogue.profile(["64b"] if "flows" in able else ["64b", "1-flow"])
    return Traffic(profile, "bidirectional" in able, pairs=testbed.pair_count)


def misfits_of(testbed: Testbed, catalogue: Catalogue) -> Iterator[Misfit]:
    """Return the addresses of *testbed* that do not fit what is sent before anything is judged."""
    probe = _probe(testbed, catalogue)
    yield from network_misfits(testbed, probe.profile, probe.bidirectional, probe.pairs)


def check_login(testbed: Testbed, software: Software, path: Path, commands: RouterDescription | None = None) -> None:
    """Raise ConfigError where the testbed of *path* and the router's *software* do not agree about login or changes."""
    router = testbed.router if isinstance(testbed, HardwareSettings) else None
    hardware, prepared = isinstance(testbed, HardwareSettings), testbed.prepare != "none"
    described, black_box = commands is not None, software.is_black_box
    file = f"variables/shells/{software.shell}.yaml"
    refusals = {
        f"a router of 'shell: {software.shell}' is hardware; expected a testbed of 'kind: hardware'": (
            described and not hardware
        ),
        f"the router is not configured from here: {file} has no 'changes'; expected 'prepare: none'": (
            commands is not None and prepared and not commands.changes
        ),
        f"'set_up' has frames that {file} does not describe; set the router up by hand and remove them": (
            commands is not None and any(commands.groups[kind] is None for kind in testbed.set_up)
        ),
        "has no 'router', which says how to log in to it; a black box needs none, and its platform's software says"
        " 'shell: none'": hardware and router is None and not black_box,
    }
    if wrong := next((words for words, applies in refusals.items() if applies), ""):
        raise ConfigError(wrong, path)


def replaced_files(project: Project, used: Mapping[str, str] | None = None) -> Iterator[str]:
    """Return a sentence for each file or word of *project* in place of a packaged one.

    *used*: the only file of a kind.
    """
    for kind in KINDS:
        layers: Layers = getattr(project, kind)
        if kind == "profiles":
            yield from replaced_entries(layers)
            continue
        for path in layers.replaced([f"{used[kind]}.yaml"] if used and kind in used else None):
            warning = f"{path}: takes the place of the file of this name that comes with Lineproof"
            if kind == "goals":
                warning += f"; what the documents promise of goal '{path.stem}' is not about it"
            yield warning


def check_simulable(project: Project, platform: Platform, software: str, testbed: str, instead: str = "") -> None:
    """Raise ConfigError where *platform* has no model of *software*, which the simulated *testbed* needs.

    *instead*: what else to do; "": name the testbed of the router, as a run does.
    """
    models = platform.model.get("software")
    if not platform.model:
        lack = "no 'model:'"
    elif isinstance(models, Mapping) and software not in models:
        lack = f"no '{software}' in 'model.software'"
    else:
        return
    raise ConfigError(
        f"has {lack}, so testbed '{testbed}' cannot simulate it; {instead or NAME_TESTBED}; or add its"
        " physical parameters",
        project.platforms / f"{platform.platform}.yaml",
    )
