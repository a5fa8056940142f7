"""The suites' variables of the command line (``robot -v NAME:value``), and Robot's secret ones."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from robot.api.types import Secret
from robot.libraries.BuiltIn import BuiltIn
from robot.utils import timestr_to_secs

from ..errors import ConfigError
from ..files import is_folder, read_text, require_folder
from ..system.login import Secrets
from ..visible import shortened

_ANY, _PERHAPS = (".+", "a value, or leave it out"), (".*", "")
_WHEN = "never|onfailure|always", "never, on failure or always"

VARIABLES = {
    "TESTBED": _ANY,
    "GOAL": _ANY,
    "CHARACTERISE": _WHEN,
    "TELEMETRY": _WHEN,
    "SEARCH_DEADLINE": _ANY,
    "MARGIN": ("on|off|true|false", "on or off"),  # a YAML file makes true and false of them
    "MARGIN_DEADLINE": _ANY,
    "SOAK": ("part|whole", "part or whole"),
    "CALIBRATIONS": _PERHAPS,
    "REPEATS": ("none|[1-9][0-9]?|100", "a whole number from 1 to 100"),
    "RESUME": ("([a-z0-9][a-z0-9.]{0,99})?", "the name of a run's folder in the results"),
    "PROJECT": _PERHAPS,
    "RESULTS": _PERHAPS,
}
"""The variables of the resources: what a value matches, as :func:`_word`; and what is expected."""


def check_run_variables() -> None:
    """Raise ConfigError for a variable of the running suite that is wrong or misspelt; says what is expected."""
    suite = Path(str(BuiltIn().get_variable_value("${SUITE SOURCE}")))
    given = (value.partition(":")[0] for word, value in pairwise(sys.argv) if word in ("-v", "--variable"))
    check_names(given, read_text(suite, 1 << 20) if suite.is_file() else "")
    check_values({name: BuiltIn().get_variable_value(f"${{{name}}}") for name in VARIABLES})


def check_names(given: Iterable[str], suite: str) -> None:
    """Raise ConfigError for a name *given* on the command line that is like one of ours, and not in the text *suite*.

    Robot itself takes any name, and the run would have the default of ours; with '=' for ':' all of it is the name.
    """
    for name in given:
        # 'GAOL' is 0.75 of 'GOAL'
        near = difflib.get_close_matches(name.partition("=")[0].upper()[:40], VARIABLES, 1, 0.74)
        if near and name.upper() not in VARIABLES and name.upper() not in suite.upper():
            raise ConfigError(f"'-v {shortened(name)}': Lineproof has no such variable; did you mean '-v {near[0]}:…'?")


def check_values(values: Mapping[str, Any]) -> None:
    """Raise ConfigError for a value that could only fail later. None: its default."""
    for name, value in values.items():
        pattern, expected = VARIABLES[name]
        if value is not None and not re.fullmatch(pattern, _word(value), re.DOTALL):
            raise _wrong(name, value, expected)
    for name in ("SEARCH_DEADLINE", "MARGIN_DEADLINE"):
        deadline = values.get(name)
        if deadline is not None and _word(deadline) != "none":
            try:
                seconds = timestr_to_secs(deadline)
            except (ValueError, OverflowError):
                seconds = 0.0
            if not 0 < seconds <= 86400:
                raise _wrong(name, deadline, "a time of more than 0 and at most 24 h, as '5 min'")
    if calibrations := values.get("CALIBRATIONS"):
        require_folder(Path(str(calibrations)), "the folder of calibrations (-v CALIBRATIONS:)")
    if results := values.get("RESULTS"):
        path = Path(str(results)).absolute()
        there = next(folder for folder in (path, *path.parents) if folder.exists())
        if not is_folder(there):
            raise ConfigError("is not a folder; expected a folder for results (-v RESULTS:), which may be new", there)


def _wrong(name: str, value: object, expected: str) -> ConfigError:
    return ConfigError(f"'-v {name}:{shortened(value)}': expected {expected}")


def _word(value: object) -> str:
    """Return *value* as Robot compares words."""
    return re.sub(r"[ _-]", "", str(value)).lower()


def secrets_of_variables() -> Secrets:
    """The secrets that the running suite has: ``${ROUTER_PASSWORD: Secret}`` is ROUTER_PASSWORD."""
    given, plain = dict[str, str](), set[str]()
    for name, value in BuiltIn().get_variables(no_decoration=True).items():
        if isinstance(value, Secret):
            given[_capitals(name)] = str(value.value)
        elif isinstance(value, str):
            plain.add(_capitals(name))
    return Secrets(given, frozenset(plain))


def _capitals(name: str) -> str:
    """A variable's name as the testbed file has it: Robot does not tell 'router password' from 'ROUTER_PASSWORD'."""
    return name.upper().replace(" ", "_")
