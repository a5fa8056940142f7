"""The labels of a run: what Robot's reports and Allure say of it, above all that it is simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn

from ..evidence import allure
from ..evidence.facts_table import short_facts
from ..evidence.recorder import Recorder
from ..session.session import Session


@dataclass(frozen=True)
class RunLabels:
    """*recorder* writes the run of *session*; *words*: the suite's metadata beside the testbed's."""

    session: Session
    recorder: Recorder
    allure_folder: Path
    words: Mapping[str, str]

    def show(self) -> None:
        """Set the suite's metadata, and Allure's environment and categories."""
        simulated = self.session.simulated
        words = {"Testbed": testbed_words(self.session), **self.words}
        for name, value in words.items():
            BuiltIn().set_suite_metadata(name, value, append=False, top=False)
        if simulated:
            BuiltIn().set_suite_metadata("Testbed", words["Testbed"], append=False, top=True)
        self._write_environment(words)
        allure.write_categories(self.allure_folder, words["Platform"], simulated)

    def show_router(self) -> None:
        """Add the router's facts to Allure's environment."""
        self._write_environment({"Testbed": testbed_words(self.session), **self.words})

    def _write_environment(self, words: Mapping[str, str]) -> None:
        allure.write_environment(self.allure_folder, {**words, **short_facts(self.session.router.facts)})

    def follow(self) -> None:
        """Mark everything if the generator or the router has said meanwhile that it is simulated."""
        known = self.recorder.environment.simulated
        self.recorder.mark_simulated(self.session.simulation_signs)
        if self.session.simulated and not known:
            self.show()
            show_simulated(self.session)


def testbed_words(session: Session) -> str:
    """The testbed in a line, and whether it is simulated."""
    facts = session.testbed.facts
    if not session.simulated:
        return facts.label
    speed = f"; its clock runs {facts.clock_speed:g} times as fast as real time" if facts.clock_speed != 1 else ""
    return f"SIMULATED (not a measurement of a router): {session.simulation_text}{speed}"


def show_simulated(session: Session) -> None:
    """Say on the console that *session* is simulated."""
    logger.console(f"\nSIMULATED: {session.simulation_text}; nothing here is a measurement of a router.")
