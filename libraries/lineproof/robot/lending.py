"""Testbeds that are lent, by pabot or labgrid.

``pabot --resourcefile FILE`` reads a value set for each testbed, and a server of pabot's says who has which. The set of
a process that was killed stays with it until pabot ends.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn
from robot.libraries.Remote import Remote

from ..errors import ConfigError, TestbedError
from ..platforms import named_file
from ..testbed.files import read_testbed_or_pool
from ..testbed.lab import LabPlace
from ..testbed.settings import PoolSettings
from ..testbed.waiting_time import Say, WaitProgress
from ..units import duration_text
from ..visible import shortened
from .shared import Shared, say


def lent_testbed(shared: Shared, testbed: str) -> str:
    """Return the name of the testbed to use: *testbed* itself, or, of a pool, one that is free now.

    The suite has it until it is given back. Raises ConfigError, and TestbedError if none is free in the pool's time.
    """
    project = shared.project
    settings = read_testbed_or_pool(project.testbeds, testbed)
    if not isinstance(settings, PoolSettings):
        return testbed
    shared.give_back()
    lent: ValueSet | LabPlace
    if settings.lab is None:
        lent = ValueSet.acquire(testbed, settings.tags, settings.wait, say)
        name, lender = lent.testbed, f"pabot's value set '{lent.name}'"
    else:
        lent = LabPlace.acquire(settings.lab, testbed, say)
        name, lender = lent.name, f"labgrid's place '{lent.name}'"
    shared.lent[shared.suite_name] = lent
    named_file(project.testbeds, name, f"testbed for {lender}")
    logger.info(f"of pool '{testbed}' this suite has testbed '{name}', {lender}", also_console=True)
    return name


POLL = 0.5
"""Seconds between two tries."""

TESTBED = "testbed"
"""Key of a value set: its testbed."""

_EXAMPLE = (
    "expected a section for each testbed in the file of 'pabot --resourcefile', as '[bench1]' and 'testbed=bench1'"
)


@dataclass
class ValueSet:
    """The value set *name* of *testbed*, which pabot's server *remote* lends to this process, *caller*."""

    remote: Any
    caller: str
    name: str = ""
    testbed: str = ""

    @classmethod
    def acquire(cls, pool: str, tags: Sequence[str], limit: float, say: Say) -> ValueSet:
        """A set with all *tags*, once one is free: *limit* s at most. Raises ConfigError, TestbedError."""
        value, remote = BuiltIn().get_variable_value, cast(Any, Remote)  # which has no types
        uri, caller = value("${PABOTLIBURI}"), value("${CALLER_ID}")
        if not uri or not caller:
            raise ConfigError(
                f"the testbeds of pool '{pool}' are lent by pabot; expected 'pabot --resourcefile FILE -v"
                f" TESTBED:{pool} …', or the name of one testbed"
            )
        lent = cls(remote(uri, timeout="30 s"), str(caller))
        progress = WaitProgress(f"a testbed of pool '{pool}'", limit, say)
        while True:
            name, values = lent._ask("acquire_value_set", lent.caller, *tags)
            if name:
                lent.name, lent.testbed = str(name), str(values.get(TESTBED, ""))
                if not lent.testbed:
                    lent.close()
                    raise ConfigError(f"pabot's value set '{shortened(name)}' names no testbed; {_EXAMPLE}")
                return lent
            why = f"other suites have all that pabot lends{' with the tags ' * bool(tags)}{', '.join(tags)}"
            if progress.is_over:
                raise TestbedError(
                    f"no testbed of pool '{pool}' was free for {duration_text(limit)}: {why}; run fewer suites at once"
                    " ('pabot --processes'), or give 'wait' of the pool more time"
                )
            progress.note(why)
            time.sleep(POLL)

    def close(self) -> None:
        """Give it back. Harmless when repeated, and when pabot has ended."""
        with contextlib.suppress(TestbedError, ConfigError):
            self._ask("release_value_set", self.caller)

    def _ask(self, what: str, *arguments: object) -> Any:
        """Raises ConfigError if there is no such set, TestbedError if pabot does not answer."""
        try:
            return self.remote.run_keyword(what, arguments, {})
        except RuntimeError as error:
            text = shortened(" ".join(str(error).split()))
            if "never imported" in text or "No value set matching" in text:
                raise ConfigError(f"{text}; {_EXAMPLE}") from None
            if "already reserved" in text:
                raise ConfigError(f"{text}; remove the suite's own 'Acquire Value Set'") from None
            raise TestbedError(f"pabot's server does not lend testbeds: {text}") from None
