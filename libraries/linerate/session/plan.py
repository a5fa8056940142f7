"""All that is known before anything starts: platform, testbed, goal and words, read from their files and checked."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..ceilings.calibration import Calibration, read_calibration
from ..ceilings.cards import CardFile, read_cards
from ..counts.trial import Load
from ..errors import ConfigError, SentenceError
from ..generators.streams import probe_size
from ..generators.trex.profile_loader import TrexProfileLoader
from ..methods.budget import Budget, total
from ..methods.recovery import Phases
from ..platforms import Platform, Software, named_file, read_platform
from ..project import Project
from ..sla.goals import Goal, read_goal
from ..sla.requirement import Quantity, Requirement, TrafficWords
from ..sla.sentence import parse
from ..testbed.files import read_testbed
from ..testbed.settings import HardwareSettings, SimulatedSettings, Testbed
from ..traffic.catalogue import Catalogue
from ..traffic.profiles import Profile
from ..units import si

FEWEST = 100
"""Frames that a trial must have at least: fewer tell nothing of a router."""

SKEW = 0.01
"""How far latency streams, which no load changes, may shift the mean frame size that rates in bits are made of."""


@dataclass(frozen=True)
class Plan:
    """All that is known before anything starts: read from the files, checked, nothing opened."""

    project: Project
    platform: Platform
    software_name: str
    software: Software
    testbed: Testbed
    goal: Goal
    catalogue: Catalogue
    calibration: Calibration | None = None
    """What the testbed's generator was found to carry by itself, if anybody has measured it."""

    cards: tuple[CardFile, ...] = ()
    """What is known of generators' network cards."""

    @classmethod
    def read(
        cls,
        project: Project,
        platform: str,
        software: str | None,
        testbed: str,
        goal: str,
        calibrations: Path | None = None,
    ) -> Plan:
        """Read every file concerned. *calibrations*: the folder that may hold one of this testbed; None: none is read.

        Raises ConfigError naming file, line and remedy.
        """
        box = read_platform(project.platforms, platform)
        name = software or next(iter(box.software))
        if name not in box.software:
            raise ConfigError(
                f"platform '{platform}' has no software '{name}'; known: {', '.join(box.software)}",
                project.platforms / f"{platform}.yaml",
            )
        settings, cards = read_testbed(project.testbeds, testbed), read_cards(project.generators)
        if len(interfaces := box.software[name].interfaces) < 2 * settings.pair_count:
            raise ConfigError(
                f"'{name}' has {len(interfaces)} interfaces ({', '.join(interfaces)}), and testbed '{testbed}' is"
                f" cabled to {2 * settings.pair_count}; expected as many, in the order of the cables",
                project.platforms / f"{platform}.yaml",
            )
        if isinstance(settings, HardwareSettings) and settings.generator.card is not None:
            named_file(project.generators, settings.generator.card, "card")
        return cls(
            project,
            box,
            name,
            box.software[name],
            settings,
            read_goal(project.goals, goal),
            Catalogue.read(
                project.profiles, TrexProfileLoader(_client_of(settings), environment=_without_passwords(settings))
            ),
            read_calibration(calibrations, testbed, platform) if calibrations else None,
            cards,
        )

    def goal_for(self, requirement: Requirement) -> Goal:
        """The goal, with the duration sum that the sentence asks for, or that its method has."""
        if requirement.quantity is Quantity.RECOVERY:
            return Phases.of(self.goal, requirement.threshold.number).goal(self.goal)
        if requirement.lasting is None:
            return self.goal
        return self.goal.model_copy(update={"duration_sum": requirement.lasting, "whole": True})

    def goal_at(self, requirement: Requirement, link_bps: float) -> Goal:
        """The goal as it is at the sentence's load: with the longer trials that a buffer needs at a low rate."""
        goal = self.goal_for(requirement)
        match requirement.quantity:
            case Quantity.THROUGHPUT | Quantity.LOSS:
                return goal.at(self.load_for(requirement, link_bps).pps)
            case Quantity.FORWARDING_RATE:
                return goal.at(requirement.threshold_load(link_bps).pps)
            case _:
                return goal

    def load_for(self, requirement: Requirement, link_bps: float) -> Load:
        """The load that a sentence is judged at, per sending port: its threshold, the one it names, or the maximum."""
        if requirement.quantity is Quantity.THROUGHPUT:
            return requirement.threshold_load(link_bps)
        return requirement.named_load(link_bps) or self.maximum_load(requirement.profile, link_bps)

    def maximum_load(self, profile: Profile, link_bps: float) -> Load:
        """The most that the testbed lets its generator be asked for, per port."""
        return Load(profile.line_rate_pps(link_bps) * self.testbed.maximum_load_percent / 100)

    @property
    def card(self) -> str | None:
        """The generator's card, where the testbed names it."""
        return self.testbed.generator.card if isinstance(self.testbed, HardwareSettings) else None

    @property
    def warm_up(self) -> float:
        """Seconds of traffic before a sentence's first trial."""
        return self.goal.warm_up if self.testbed.warm_up is None else self.testbed.warm_up

    @property
    def clock_speed(self) -> float:
        """Seconds of the testbed's clock per second of the wall."""
        return self.testbed.clock_speed if isinstance(self.testbed, SimulatedSettings) else 1.0

    def budget(self, requirements: Iterable[Requirement]) -> Budget:
        """What all of *requirements* take."""
        return total(
            Budget.of(self.goal_at(requirement, self.platform.link_bps), self.warm_up) for requirement in requirements
        )

    def requirement(self, sentence: str) -> Requirement:
        """The sentence, understood and checked against the platform's ports. Raises SentenceError."""
        found = parse(sentence, self.catalogue)
        self.check_pairs(found)
        found.check(self.platform.link_bps)
        trial = self.goal.final_trial_duration
        if found.lasting is not None and found.lasting < trial:
            raise SentenceError(
                f"'{sentence}': {found.lasting:g} s is less than one trial of goal '{self.goal.goal}' ({trial:g} s)"
            )
        load = self.load_for(found, self.platform.link_bps).pps
        frames = load * self.goal_at(found, self.platform.link_bps).final_trial_duration
        if frames < FEWEST:
            raise SentenceError(
                f"'{sentence}': a trial of goal '{self.goal.goal}' would be {frames:.3g} frames, of which nothing can"
                f" be told; expected a load of at least {si(load * FEWEST / frames, 'pps')}"
            )
        _check_program(sentence, found.profile, load)
        if found.statistic is not None:
            self._check_probe(sentence, found)
        if found.quantity is Quantity.COST and self.software.shell != "vpp":
            raise SentenceError(f"'{sentence}': cycles per packet are read from VPP; {self.software_name} shows none")
        return found

    def check_pairs(self, traffic: Requirement | TrafficWords) -> None:
        """Raise SentenceError where the testbed has not as many pairs of ports as *traffic* goes through."""
        there = self.testbed.pair_count
        if traffic.pairs > there:
            how = "'ports' of the generator" if isinstance(self.testbed, HardwareSettings) else "'pairs'"
            raise SentenceError(
                f"'{traffic.sentence}': testbed '{self.testbed.testbed}' has {there} pair{'s' * (there > 1)} of ports;"
                f" more are told by {how} in its file, and by 'interfaces' of the platform"
            )

    def _check_probe(self, sentence: str, requirement: Requirement) -> None:
        try:
            for frame in requirement.profile.frames:
                probe_size(requirement.profile, frame)
        except ValueError as error:
            raise SentenceError(f"'{sentence}': {error}") from None


def _client_of(testbed: Testbed) -> str:
    return testbed.generator.client if isinstance(testbed, HardwareSettings) else testbed.client


def _without_passwords(testbed: Testbed) -> dict[str, str]:
    """The environment for programs of the user's own: none of the variables that hold this testbed's passwords."""
    found = dict(os.environ)
    if isinstance(testbed, HardwareSettings):
        logins = (testbed.router, testbed.generator.ssh)
        for name in (login.password_from for login in logins if login is not None):
            found.pop(name or "", None)
    return found


def _check_program(sentence: str, profile: Profile, pps: float) -> None:
    """Raise SentenceError where latency streams of a user's own file, whose rate no load changes, spoil *pps*."""
    program = profile.program
    if program is None or not program.fixed_pps:
        return
    streams = f"the latency streams of '{profile.name}'"
    if pps <= program.fixed_pps:
        raise SentenceError(
            f"'{sentence}': {streams} send {si(program.fixed_pps, 'pps')} whatever the load is; expected a load"
            " of more than that"
        )
    mean = program.mean_size(pps)
    if abs(mean - profile.mean_size) > SKEW * profile.mean_size:
        raise SentenceError(
            f"'{sentence}': at this load {streams} make the mean frame one of {mean:.4g} bytes, and the others have"
            f" {profile.mean_size:.4g}, so that rates in bits would be wrong; expected latency frames of about"
            " that size, or a higher load"
        )
