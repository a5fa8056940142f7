"""Keywords for testbeds that are lent: by pabot or labgrid, out of a pool; and for power that labgrid switches."""

from __future__ import annotations

from robot.api import logger
from robot.api.deco import keyword
from robot.libraries.BuiltIn import BuiltIn

from ..core.verdict import Verdict
from ..errors import ConfigError
from ..platforms import named_file
from ..testbed.files import read_testbed_or_pool
from ..testbed.lab.place import LabPlace
from ..testbed.settings import PoolSettings
from .shared import Component
from .value_sets import ValueSet


def say(words: str) -> None:
    """Print a line on the console at once, and into the log."""
    logger.console(f"\n{words}")


class LendingKeywords(Component):
    """Gets a testbed of a pool, and revives a router that hangs."""

    @keyword(tags=["testbed"])
    def lent_testbed(self, testbed: str) -> str:
        """The name of the testbed to use: *testbed* itself, or, of a pool, one that is free now.

        A pool is a file of ``variables/testbeds`` with ``kind: pool``. Its testbeds are lent by pabot (a value set for
        each) or by labgrid (a place for each); the testbed is given back when it is closed. Waits, and says what for,
        if none is free. Fails if none is within the pool's time. Example:
        | ${name} =    Lent Testbed    pool
        """
        project = self.shared.project
        found = read_testbed_or_pool(project.testbeds, testbed)
        if not isinstance(found, PoolSettings):
            return testbed
        if found.lab is None:
            lent = ValueSet.acquire(testbed, found.tags, found.wait, say)
            self.shared.borrow(lent)
            name, lender = lent.testbed, f"pabot's value set '{lent.name}'"
        else:
            place = LabPlace.acquire(found.lab, testbed, say)
            self.shared.borrow(place)
            name, lender = place.name, f"labgrid's place '{place.name}'"
        named_file(project.testbeds, name, f"testbed for {lender}")
        if isinstance(read_testbed_or_pool(project.testbeds, name), PoolSettings):
            raise ConfigError(
                f"{lender} of pool '{testbed}' is a pool itself; expected a testbed", project.testbeds / f"{name}.yaml"
            )
        logger.info(f"of pool '{testbed}' this suite has testbed '{name}', {lender}", also_console=True)
        return name

    @keyword(tags=["testbed"])
    def revive_router_after(self, verdict: Verdict) -> bool:
        """Whether the router hung when *verdict* was INCONCLUSIVE, and answers again after it was switched off and on.

        Only if ``lab: {power: …}`` of its testbed says so, and once for each sentence. Then it is configured again,
        and slow traffic must come through it. Example:
        | ${again} =    Revive Router After    ${verdict}
        """
        revival = self.shared.session.revival
        again = revival.after(verdict)
        if revival.note:
            logger.warn(revival.note)
        if again:
            BuiltIn().log(f"tried again; the first try was {verdict.ruling.value}: {verdict.reason}")
        return again
