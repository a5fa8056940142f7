"""``lineproof init NAME``: a project that runs at once on the simulated testbed."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from string import Template

from ..errors import ConfigError, TestbedError
from ..files import write_whole
from ..platforms import named_file
from ..project import packaged_suites, packaged_variables
from ..system.children import requirement
from .arguments import complete_names

PLATFORMS, TESTBEDS = Path("variables", "platforms"), Path("variables", "testbeds")

NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
    parser.description = "Make a project in this folder that runs at once, simulated."
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("name", nargs="?", help="the box; its suite and platform file get this name (mybox)")
    shipped = chosen.add_argument("--platform", help="one that comes with Lineproof: its file and its suite are copied")
    complete_names(shipped, "platforms")


def run(arguments: argparse.Namespace) -> int:
    """Write the files, or none of them; returns 0. Raises ConfigError, TestbedError."""
    name = arguments.platform or arguments.name or "mybox"
    if not NAME.fullmatch(name):
        raise ConfigError(f"'{name}' cannot name a project's files; expected small letters, digits, '_' and '-'")
    here = Path.cwd()
    files = dict(_files(name, shipped=arguments.platform is not None))
    if there := [path for path in files if (here / path).exists()]:
        exist = f"exist{'s' if len(there) == 1 else ''} already"
        raise ConfigError(f"{', '.join(map(str, there))} {exist}; nothing was written, expected a folder without", here)
    try:
        for path, text in files.items():
            write_whole(here / path, text)
    except TestbedError:
        for path in files:
            (here / path).unlink(missing_ok=True)
        raise
    for path in files:
        print(f"wrote {path}")
    suite = f"tests/{name}.robot"
    if re.search(r"(?m)^model:", files[PLATFORMS / f"{name}.yaml"]):
        print(f"Next: robot --outputdir results {suite} (simulated; it measures no router)")
        print(f"Without a promise: lineproof measure simulated --platform {name} (how much it carries)")
    else:
        print(f"Next: {TESTBEDS / 'lab.yaml'}, then robot --outputdir results -v TESTBED:lab {suite}")
    if "file:" in (here_only := requirement("bench")):
        print(f"tox needs LINEPROOF='{here_only}': it was installed from a path, which no file of a project names")
    return 0


def _files(name: str, shipped: bool) -> Iterator[tuple[Path, str]]:
    # a path of this machine is of no use to those who have the project, too
    wanted = requirement("bench").partition(" @ file:")[0]

    def made(template: str) -> str:
        path = Path(__file__).parent / "template" / template
        return Template(path.read_text(encoding="utf-8")).substitute(name=name, lineproof=wanted)

    platform, suite = made("platform.yaml"), made("suite.robot")
    if shipped:
        platform = named_file(packaged_variables() / "platforms", name, "platform").read_text(encoding="utf-8")
        if (own := packaged_suites() / f"{name}.robot").is_file():
            suite = own.read_text(encoding="utf-8").replace("../resources/acceptance", "lineproof/acceptance")
    yield Path("tests", f"{name}.robot"), suite
    yield PLATFORMS / f"{name}.yaml", platform
    lab = named_file(packaged_variables() / "testbeds", "lab-example", "testbed").read_text(encoding="utf-8")
    yield TESTBEDS / "lab.yaml", lab.replace("testbed: lab-example", "testbed: lab")
    yield Path("tox.ini"), made("tox.ini")
    yield Path(".gitignore"), made("gitignore")
    yield Path("robot.toml"), made("robot.toml")
