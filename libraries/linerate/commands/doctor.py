"""``linerate doctor TESTBED --platform P``: is this testbed fit for a run? Step by step, without traffic."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from ..errors import LinerateError, TestbedError
from ..evidence.facts_table import known_rows
from ..files import require_folder
from ..generators.base import GeneratorPort
from ..methods.budget import duration_text
from ..project import Project
from ..routers.base import Shell
from ..routers.black_box import WHY_UNREAD
from ..routers.link_state import LinkState, read_link_states
from ..session.leftovers import leftover_text
from ..session.plan import Plan
from ..session.session import Session
from ..units import counted
from .arguments import add_json, add_plan_arguments, complete_names, print_json
from .calibrate import GOAL, folder

COMMAND_LIMIT = 10.0
"""Seconds that one command on the router may take."""


class State(Enum):
    """The result of a check."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Check:
    """One line. ``finding``: what was found, and what to do if something is wrong."""

    name: str
    state: State
    finding: str

    def __str__(self) -> str:
        return f"{self.state.value:<8} {self.name}: {self.finding}"


def ok(name: str, finding: str) -> Check:
    """Nothing to do."""
    return Check(name, State.OK, finding)


def warning(name: str, finding: str) -> Check:
    """A run is possible, and something should be fixed."""
    return Check(name, State.WARNING, finding)


def wrong(name: str, finding: object) -> Check:
    """A run would fail."""
    return Check(name, State.WRONG, str(finding))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.description = (
        "Check a testbed step by step, without traffic: files, generator, ports, card, router, cables, calibration."
    )
    add_plan_arguments(parser)
    goal = parser.add_argument("--goal", default=GOAL, help=f"a file of variables/goals, without .yaml ({GOAL})")
    complete_names(goal, "goals")
    parser.add_argument("--calibrations", type=Path, help="folder of the calibrations (results/calibrations)")
    parser.add_argument(
        "--traffic",
        action="store_true",
        help="configure the router and send slow traffic in each direction for a second as well",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="list the commands that a run makes on the router to configure it, and their opposites; none is run",
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each check as it is done; returns 0, or 1 where something is wrong."""
    done: list[Check] = []
    with closing(examine(arguments)) as checks:
        for check in checks:
            done.append(check)
            if not arguments.json:
                print(check, flush=True)
    count = {state: sum(check.state is state for check in done) for state in State}
    bad, odd = count[State.WRONG], count[State.WARNING]
    if arguments.json:
        found = [{"check": check.name, "state": check.state.value, "finding": check.finding} for check in done]
        print_json({"testbed": arguments.testbed, "platform": arguments.platform, "checks": found})
    else:
        print(f"{counted(len(done), 'check')}: {bad} wrong, {counted(odd, 'warning')}", flush=True)
    return 1 if bad else 0


def examine(arguments: argparse.Namespace) -> Generator[Check, None, None]:
    """Every check, each after those it depends on. Everything that was opened is closed at the end."""
    try:
        project = Project.find()
        calibrations = folder(project)
        if arguments.calibrations is not None:
            calibrations = require_folder(arguments.calibrations, "the folder of calibrations")
        plan = Plan.read(
            project, arguments.platform, arguments.software, arguments.testbed, arguments.goal, calibrations
        )
    except LinerateError as error:
        yield wrong("files", error)
        return
    yield ok(
        "files",
        f"{plan.platform.description}, {plan.software_name} {plan.software.version}; {plan.testbed.kind} testbed",
    )
    try:
        session = Session.start(plan)
    except LinerateError as error:
        yield wrong("testbed", error)
        return
    try:
        yield from _testbed(session)
        known = session.simulated
        yield from _generator(session)
        yield from _router(session, arguments.traffic, arguments.dry_run)
        if session.simulated and not known:
            yield _simulated(session)
        if session.generator.connected:
            yield _calibration(session)
    finally:
        session.close()


def _testbed(session: Session) -> Iterator[Check]:
    for sentence in session.testbed.cleared:
        yield warning("leftovers", f"{sentence}; nothing more to do")
    if not session.testbed.cleared:
        yield ok("leftovers", "none of an earlier run that was killed")
    if session.simulated:
        yield _simulated(session)


def _simulated(session: Session) -> Check:
    return warning("testbed", f"SIMULATED: {session.simulation_text}; nothing measured on it is a measurement")


# -- generator ---------------------------------------------------------------------------------------------------------


def _generator(session: Session) -> Iterator[Check]:
    access = session.testbed.facts.generator
    if access.force:
        # a check must not take ports from other users
        session.testbed.facts = replace(session.testbed.facts, generator=replace(access, force=False))
        yield warning("generator", "'force: true': a run takes the ports from other users; not done here")
    problem: TestbedError | None = None
    try:
        session.generator.connect()
    except TestbedError as error:
        problem = error
    # if it is connected although there is a problem, the problem is a port's and reported below
    if not session.generator.connected:
        yield wrong("generator", problem)
        return
    try:
        versions, ports = session.generator.versions, session.generator.ports
    except TestbedError as error:
        yield wrong("generator", error)
        return
    yield ok(
        "generator",
        f"TRex {versions.get('server', '?')} at {access.host}:{access.sync_port} takes the client"
        f" {versions.get('client', '?')}; no other user held ports {' and '.join(str(port.index) for port in ports)}",
    )
    if leftover := versions.get("leftover"):
        yield warning("leftovers", f"{leftover}; nothing more to do")
    for port in ports:
        yield _port(session, port)
    yield from _card(session)


def _port(session: Session, port: GeneratorPort) -> Check:
    name, speed = f"port {port.index}", f"{port.speed_bps / 1e9:g} Gbit/s"
    if not port.link_up and session.plan.testbed.prepare == "configure":
        return warning(name, "has no link; check the cable, unless the router takes its interface up for a run only")
    if not port.link_up:
        return wrong(name, "has no link; check the cable and the router's port")
    if port.speed_bps and abs(port.speed_bps - session.link_bps) > 0.01 * session.link_bps:
        return wrong(
            name,
            f"runs at {speed}, the platform '{session.plan.platform.platform}' says {session.link_bps / 1e9:g}; fix"
            " 'port_speed' or the cabling",
        )
    return ok(name, f"link up at {speed}, {port.mac}, driver {port.driver or 'not reported'}")


def _card(session: Session) -> Iterator[Check]:
    known = session.generator.known_limits
    if known is None or known.card_file is None:
        yield warning("card", str(known or "the generator's ports could not be asked"))
        return
    yield ok("card", str(known))
    card = known.card_file.card
    for lacking in card.latency:
        if lacking.servers.include(known.server):
            what = f"of {', '.join(lacking.frames)} frames " if lacking.frames else ""
            yield warning("card", f"no latency {what}({lacking.source}); {lacking.remedy}")
    for quirk in card.quirks:
        if quirk.servers.include(known.server):
            yield ok("card", f"{quirk.quirk} ({quirk.source})")


# -- router ------------------------------------------------------------------------------------------------------------


def _router(session: Session, traffic: bool, dry_run: bool) -> Iterator[Check]:
    if session.router.is_black_box:
        session.router.connect()
        yield ok("router", f"{WHY_UNREAD}: no login, no ledger")
        yield from _or_wrong("power meter", lambda: _power(session))
        if traffic and session.generator.connected:
            yield from _or_wrong("traffic", lambda: _traffic(session))
        return
    access = session.testbed.facts.router
    yield from _or_wrong("router changes", lambda: _left_changes(session))
    try:
        try:
            shell = session.router.log_in()
        except TestbedError as error:
            yield wrong("router login", error)
            return
        yield ok("router login", f"{access.user} at {access.host}:{access.port}; its host key is known")
        try:
            found = session.router.connect(shell)
        except TestbedError as error:
            yield wrong("router system", error)
            return
        yield ok("router system", ", ".join(str(found[key]) for key in ("software", "version") if key in found))
        yield from _facts(session)
        described = session.plan.command_file is not None
        if not described:
            yield from _or_wrong("router rights", lambda: _rights(session, shell))
        yield from _or_wrong("router counters", lambda: _counters(session))
        if not described:
            yield from _or_wrong("router interfaces", lambda: _interfaces(session, shell))
        yield from _or_wrong("router configuration", lambda: _planned_changes(session, dry_run))
        yield from _or_wrong("power meter", lambda: _power(session))
        if traffic and session.generator.connected:
            yield from _or_wrong("traffic", lambda: _traffic(session))
    finally:
        session.router.restore()


def _facts(session: Session) -> Iterator[Check]:
    facts = session.router.facts
    words = "; ".join(f"{name}: {value}" for name, value in known_rows(facts)) or "none"
    missing = f"; {len(facts.unread)} commands gave no answer" if facts.unread else ""
    yield ok("router facts", f"{words}{missing}")
    for difference in facts.differences:
        yield warning("router facts", f"{difference}; fix the router or the platform's file")


def _or_wrong(name: str, checks: Callable[[], list[Check]]) -> Iterator[Check]:
    try:
        found = checks()
    except TestbedError as error:
        found = [wrong(name, error)]
    yield from found


def _left_changes(session: Session) -> list[Check]:
    name, plan = session.router.journal_name, session.plan
    found = session.router.leftover()
    if found is None or not (found.changes or found.in_use):
        return [ok("router changes", "none of an earlier run")] if name else []
    if found.in_use:
        return [warning("router changes", f"a run of this machine has the router configured: {found.occasion}")]
    again = f"linerate restore {plan.testbed.testbed} --platform {plan.platform.platform}"
    text = f"left by an earlier run: {leftover_text(found)}; the next run undoes them, or now: {again}"
    return [warning("router changes", text)]


def _planned_changes(session: Session, dry_run: bool) -> list[Check]:
    name = "router configuration"
    if not dry_run:
        return []
    if session.plan.testbed.prepare == "none":
        return [ok(name, "a run changes nothing ('prepare: none')")]
    if not session.generator.connected:
        return [warning(name, "what a run changes depends on the generator's ports, which cannot be read")]
    changes, lacking = session.router.planned_changes()
    lines = "".join(f"\n           {change}" for change in changes)
    found = f"a run makes {len(changes)} changes, each undone at its end; none was made now{lines}"
    return [warning(name, f"{found}\n           {lacking}") if lacking else ok(name, found)]


def _rights(session: Session, shell: Shell) -> list[Check]:
    access = session.testbed.facts.router
    if access.sudo:
        result = shell("sudo -n true", COMMAND_LIMIT)
        if result.status:
            why = (result.stderr or result.stdout).strip().partition("\n")[0] or f"status {result.status}"
            return [
                wrong(
                    "router rights",
                    f"'sudo -n' is refused to '{access.user}' ({why}); allow it without a password (NOPASSWD in"
                    " sudoers), or log in as root without 'sudo: true'",
                )
            ]
        return [ok("router rights", f"'{access.user}' may 'sudo -n'")]
    if "uid=0(" in shell("id", COMMAND_LIMIT).stdout:
        return [ok("router rights", f"'{access.user}' is root")]
    return [
        warning(
            "router rights",
            f"'{access.user}' is not root, and the testbed file does not say 'sudo: true' for the router",
        )
    ]


def _counters(session: Session) -> list[Check]:
    telemetry = session.router.watch.read()
    names = ", ".join(side.interface for side in session.testbed.facts.sides)
    up = "its uptime is not read" if telemetry.uptime is None else f"it is up for {duration_text(telemetry.uptime)}"
    if unread := session.plan.uncounted:
        return [warning("router counters", f"{unread}: no ledger; {up}")]
    return [ok("router counters", f"those of {names} are read; {up}")]


def _interfaces(session: Session, shell: Shell) -> list[Check]:
    facts = session.testbed.facts
    names = [side.interface for side in facts.sides]
    states = read_link_states(session.plan.software.shell, shell, names, facts.router.sudo)
    ports = {port.index: port for port in session.generator.ports}
    return [
        _interface(session, state, ports.get(number))
        for state, number in zip(states, facts.generator.ports, strict=True)
    ]


def _interface(session: Session, state: LinkState, port: GeneratorPort | None) -> Check:
    name = f"router interface {state.interface}"
    if port and port.destination and state.mac and port.destination.lower() != state.mac:
        return wrong(
            name,
            f"has {state.mac}, and the generator's port {port.index}, which is to be cabled to it, sends to"
            f" {port.destination}; fix the port's destination in trex_cfg.yaml, 'ports' in the testbed file or"
            " 'interfaces' of the platform",
        )
    to = f", to which port {port.index} sends" if port and state.mac and port.destination else ""
    found = f"{state.mac or 'its MAC address is not reported'}{to}"
    if state.up is False:
        if session.plan.testbed.prepare == "configure":
            return ok(name, f"{found}; down, and taken up for a run ('prepare: configure')")
        return wrong(name, "is down, and the testbed file says 'prepare: none'; take it up on the router")
    if state.carrier is False:
        # before it is configured an interface may show none although the cable is there; the port's link shows that
        return warning(name, f"{found}; it shows no link; check the cable unless the router takes it up later")
    return ok(name, found if state.up is None and state.carrier is None else f"{found}; up")


def _traffic(session: Session) -> list[Check]:
    try:
        session.router.configure()
        session.traffic.check_reachability()
    finally:
        session.router.restore()
    return [ok("traffic", "frames sent into each side came back at the other")]


def _power(session: Session) -> list[Check]:
    if session.plan.testbed.power is None:
        return []
    watts, text = session.power.watts(), session.power.text
    if not watts:
        return [warning("power meter", f"0 W, {text}; is the router plugged into it?")]
    return [ok("power meter", f"{watts:.4g} W, {text}")]


def _calibration(session: Session) -> Check:
    found = session.generator.headroom
    if found is None:
        again = f"linerate calibrate {session.plan.testbed.testbed} --platform {session.plan.platform.platform}"
        return warning("calibration", f"none: what the generator itself loses is not known; {again}")
    return warning("calibration", str(found)) if found.why_unfit or found.why_stale else ok("calibration", str(found))
