"""All that is known before anything starts: platform, testbed, goal and words, read from their files and checked."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import ConfigError, SentenceError
from .goals import Goal, read_goal
from .platforms import Platform, Software, read_platform
from .profiles import Catalogue
from .project import Project
from .requirement import Quantity, Requirement, parse
from .testbed.settings import Testbed, read_testbed


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

    @classmethod
    def read(cls, project: Project, platform: str, software: str | None, testbed: str, goal: str) -> Plan:
        """Read every file concerned. Raises ConfigError naming file, line and remedy."""
        box = read_platform(project.platforms, platform)
        name = software or next(iter(box.software))
        if name not in box.software:
            raise ConfigError(
                f"platform '{platform}' has no software '{name}'; known: {', '.join(box.software)}",
                project.platforms / f"{platform}.yaml",
            )
        return cls(
            project,
            box,
            name,
            box.software[name],
            read_testbed(project.testbeds, testbed),
            read_goal(project.goals, goal),
            Catalogue.read(project.profiles),
        )

    def requirement(self, sentence: str) -> Requirement:
        """The sentence, understood and checked against the platform's ports. Raises SentenceError."""
        found = parse(sentence, self.catalogue)
        found.check(self.platform.link_bps)
        if found.quantity is Quantity.COST and self.software.shell != "vpp":
            raise SentenceError(f"'{sentence}': cycles per packet are read from VPP; {self.software_name} shows none")
        return found
