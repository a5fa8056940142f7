"""``lineproof doctor TESTBED --platform P``: check a testbed step by step, without traffic."""

from __future__ import annotations

import argparse
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from statistics import median

from ..ceilings import FOLDER
from ..core.foreign import ForeignFrames, origins
from ..core.router_facts import RouterFacts
from ..core.telemetry import LinkState
from ..core.traffic.profiles import Profile
from ..errors import LineproofError, TestbedError
from ..evidence.forms import known_facts, pcie_text
from ..files import require_folder
from ..generators.base import ABILITIES, GeneratorPort
from ..generators.trex.driver import TrexGenerator
from ..project import Project
from ..routers.none import WHY_UNREAD
from ..session.links import dropped_by_card, wrong_destination
from ..session.plan import Plan
from ..session.router import WRONG_PEER, check_line_rate
from ..session.session import Session
from ..testbed.settings import HardwareSettings
from ..units import counted, duration_text, line_rate_pps, si
from ..visible import shortened
from .arguments import add_json, add_plan_arguments, complete_names, number, print_lines, say
from .calibrate import GOAL

LISTEN_SECONDS = 10.0
"""Seconds of listening, on the testbed's clock: spanning tree says hello five times in them."""


class State(Enum):
    """The result of a check: WARNING: a run is possible, WRONG: a run would fail."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Check:
    """A line of the output. ``finding``: the result, and what to do; ``name``: "" for its step's.

    ``details``: what the line leaves out, as a figure's source; ``--json`` has it.
    """

    state: State
    finding: str
    details: object = ""
    name: str = ""

    def __str__(self) -> str:
        return f"{self.state.value:<8} {self.name}: {self.finding}"


ok, warning, wrong = partial(Check, State.OK), partial(Check, State.WARNING), partial(Check, State.WRONG)


def step(name: str, checks: Iterable[Check]) -> Iterator[Check]:
    """Yield *checks*, by default with *name*; a TestbedError ends them as one that is wrong."""
    try:
        yield from (replace(check, name=check.name or name) for check in checks)
    except TestbedError as error:
        yield wrong(str(error), name=name)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that the command takes."""
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
    parser.add_argument(
        "--listen",
        type=number(0, 3600),
        default=LISTEN_SECONDS,
        metavar="SECONDS",
        help=f"how long to listen for frames while nothing is sent ({LISTEN_SECONDS:g}; 0: not at all)",
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each check as it is done; returns 0, or 1 where something is wrong."""
    done: list[Check] = []
    with closing(examine(arguments)) as checks:
        for check in checks:
            done.append(check)
            if not arguments.json:
                print_lines([str(check)], {})
    count = {state: sum(check.state is state for check in done) for state in State}
    bad, odd = count[State.WRONG], count[State.WARNING]
    counts = f"{counted(len(done), 'check')}: {bad} wrong, {counted(odd, 'warning')}"
    results = [
        {"check": check.name, "state": check.state.value, "finding": check.finding, "details": str(check.details)}
        for check in done
    ]
    data = {"testbed": arguments.testbed, "platform": arguments.platform, "checks": results}
    print_lines([counts], data, arguments.json, any("SIMULATED" in check.finding for check in done))
    return 1 if bad else 0


def examine(arguments: argparse.Namespace) -> Generator[Check, None, None]:
    """Yield every check, each after those that it depends on. What was opened is closed at the end."""
    opening = "files"
    try:
        project = Project.find()
        calibrations = project.results / FOLDER
        if arguments.calibrations is not None:
            calibrations = require_folder(arguments.calibrations, "the folder of calibrations")
        plan = Plan.read(
            project, arguments.platform, arguments.software, arguments.testbed, arguments.goal, calibrations
        )
        router = f"{plan.platform.description}, {plan.software_name} {plan.software.version}"
        yield ok(f"{router}; {plan.testbed.kind} testbed", name=opening)
        for misfit in plan.misfits():
            yield (wrong if misfit.certain else warning)(plan.misfit_words(misfit), name="addresses")
        opening = "testbed"
        session = Session.start(plan, say=say)
    except LineproofError as error:
        yield wrong(str(error), name=opening)
        return
    with closing(session):
        yield from step("generator host", _host(session))
        yield from step("generator", _generator(session))
        if session.simulated:
            simulated = f"SIMULATED: {session.simulation_text}; nothing measured on it is a measurement"
            yield warning(simulated, name="testbed")
        if session.generator.connected and arguments.listen:
            yield from step("noise", _noise(session, arguments.listen))
        yield from _router(session, arguments.traffic, arguments.dry_run)
        if session.generator.connected:
            yield from step("calibration", _calibration(session))


# -- generator ---------------------------------------------------------------------------------------------------------


def _generator(session: Session) -> Iterator[Check]:
    access = session.testbed.facts.generator
    if access.trex and access.trex.force:
        # a check must not take ports from other users
        access = replace(access, trex=replace(access.trex, force=False))
        session.testbed.facts = replace(session.testbed.facts, generator=access)
        yield warning("'force: true': a run takes the ports from other users; not done here")
    try:
        session.generator.connect()
    except TestbedError:
        # else the problem is a port's, and reported below
        if not session.generator.connected:
            raise
    versions, ports = session.generator.versions, session.generator.ports
    if access.trex:
        server = f"TRex {versions.get('server', '?')} at {access.trex.address} takes the client"
        server += f" {versions.get('client', '?')}"
    else:
        server = versions.get("server", session.plan.testbed.generator_type)
    yield ok(f"{server}; no other user held ports {' and '.join(str(port.index) for port in ports)}")
    driver = session.generator.driver
    if isinstance(driver, TrexGenerator):
        seconds = median(driver.round_trips())
        # a trial waits for 20 round trips beside its sending
        distance = f"{1e3 * seconds:.3g} ms to the server and back: {20 * seconds:.2g} s of each trial"
        far = warning(f"{distance}, and trials are longer where its clock decides; a nearer machine is faster")
        yield replace(far if seconds >= 0.005 else ok(distance), name="distance")
    if lacking := session.plan.abilities.lacks_of(*ABILITIES):
        lacks = "; ".join(ABILITIES[name] for name in lacking)
        kind = session.plan.testbed.generator_type
        yield warning(f"'{kind}' {lacks}; sentences that need it are refused before any traffic")
    if leftover := versions.get("leftover"):
        yield warning(f"{leftover}; nothing more to do", name="leftovers")
    # the wires between interfaces of one machine filter nothing
    filtered = isinstance(session.plan.testbed, HardwareSettings)
    addressed = dict(zip(access.ports, (side.peer_mac for side in session.router.sides()), strict=True))
    for port in ports:
        yield from step(f"port {port.index}", _port(session, port, addressed[port.index] if filtered else ""))
    yield from step("card", _card(session))
    if isinstance(driver, TrexGenerator):
        yield _latency(driver, session.plan.probe.profile)


def _port(session: Session, port: GeneratorPort, addressed: str) -> Iterator[Check]:
    """Yield the checks of *port*. *addressed*: the MAC address that the router sends to; "": any."""
    host, known = session.testbed.host, session.generator.known_limits
    firmware = {nic.interface: nic.firmware for nic in host.facts.nics}.get(port.pci.lower()) if host else None
    if not port.link_up and session.plan.testbed.prepare == "configure":
        yield warning("has no link; check the cable, unless the router takes its interface up for a run only")
    elif not port.link_up:
        yield wrong("has no link; check the cable and the router's port")
    elif slower := session.generator.slower_words(port):
        yield wrong(slower)
    else:
        link = f"link up at {port.speed_text}, {port.mac}, driver {port.driver or 'not reported'}"
        link += f", firmware {firmware}" if firmware else ""
        link += f", {counted(len(port.cores), 'core')} for its pair" if port.cores else ""
        yield ok(link if port.numa is None else f"{link}, NUMA node {port.numa}")
    if firmware and known and known.card:
        for fact in known.card.firmware_facts(firmware, known.server):
            yield warning(f"firmware {firmware}: {fact.problem}; {fact.remedy}", fact.source)
    if port.flow_control not in (None, "off"):
        yield warning(
            f"flow control is on ({port.flow_control}); switch it off: 'portattr -p {port.index} --fc none' in TRex's"
            " console, or 'ethtool -A DEV rx off tx off' on its host"
        )
    if addressed and (dropped := dropped_by_card(port, addressed)):
        yield warning(dropped)


def _card(session: Session) -> Iterator[Check]:
    known = session.generator.known_limits
    if known is None or known.card is None:
        yield warning(str(known or "the generator's ports could not be asked"))
        return
    yield ok(str(known))
    card = known.card
    for lacking in known.lacking_latency:
        of_frames = f" of {', '.join(lacking.frames)} frames" if lacking.frames else ""
        lack = f"it measures no latency{of_frames}; where a sentence asks for that: {lacking.remedy}"
        yield warning(lack, lacking.source)
    # a quirk may matter at the testbed's rates, unless a calibration says what the generator carries
    most, headroom = line_rate_pps(known.link_bps, 64), session.generator.headroom
    measured = headroom is not None and not headroom.why_unfit
    for quirk in card.quirks:
        if not quirk.servers.include(known.server):
            continue
        if quirk.above_pps is None or most <= quirk.above_pps or measured:
            yield ok(quirk.quirk, quirk.source)
        else:
            line = f"the line rate is {si(most, 'pps')} of 64-byte frames: calibrate before you believe a FAIL above"
            yield warning(f"{quirk.quirk}; {line} {si(quirk.above_pps, 'pps')}", quirk.source)


def _latency(driver: TrexGenerator, probe: Profile) -> Check:
    """Return a check that TRex counts latency in fine histograms."""
    problem = (
        "counted in histograms of one digit, so limits near a router's figure are INCONCLUSIVE: end TRex, and start"
        " it with --hdrh"
    )
    try:
        if driver.has_fine_latency(probe):
            return ok("counted in histograms of three digits", name="latency")
    except TestbedError as error:
        problem = f"how finely it is counted is not known: {error}"
    return warning(problem, name="latency")


def _calibration(session: Session) -> Iterator[Check]:
    headroom = session.generator.headroom
    if headroom is None:
        yield warning(f"none: what the generator itself loses is not known; {session.plan.calibrate}")
    else:
        yield (warning if headroom.why_unfit or headroom.why_stale else ok)(str(headroom))


def _noise(session: Session, seconds: float) -> Iterator[Check]:
    """Yield what comes in *seconds* in which nothing is sent."""
    heard = session.traffic.listen(seconds, 500)
    budget = ForeignFrames({port: received.frames for port, received in heard.items()}, seconds)
    for port, received in heard.items():
        if not received.frames:
            yield ok(f"port {port}: no frame came in {seconds:g} s without traffic")
            continue
        senders = origins(received.kept, seconds) or f"{received.frames} frames that were not captured"
        more = f", and more ({received.frames} frames in all)" if received.frames > len(received.kept) else ""
        yield warning(
            f"port {port}: {senders}{more}; a trial of 10 s may count {budget.budget(port, 10.0)} of them, and as many"
            " lost ones may hide behind them: silence the sender"
        )


# -- machines ----------------------------------------------------------------------------------------------------------


def _host(session: Session) -> Iterator[Check]:
    """Yield what the generator's host showed before the start; nothing where there is no login."""
    host = session.testbed.host
    if host is not None and host.problem:
        yield warning(f"what it is is not read: {host.problem}")
    elif host is not None:
        yield from _machine(host.facts, host.facts.unread)


def _machine(facts: RouterFacts, unread: Mapping[str, str]) -> Iterator[Check]:
    """Yield the facts of a machine in one line, and its cards in slots that are too narrow or slow.

    All facts are in the details. *unread*: the commands without an answer that nothing else tells of.
    """
    known = [f"{fact}: {value}" for fact, value in known_facts(facts).items()]
    line = shortened("; ".join(known), 200) or "none"
    if unread:
        line += f"; {counted(len(unread), 'command')} gave no answer, which no verdict needs"
    yield ok(line, "\n".join((*known, *(f"no answer to '{command}': {why}" for command, why in unread.items()))))
    for nic in facts.nics:
        pairs = (nic.pcie_width, nic.pcie_width_max), (nic.pcie_speed, nic.pcie_speed_max)
        if any(has is not None and wants is not None and has < wants for has, wants in pairs):
            yield warning(
                f"{nic.interface} ({nic.model or 'card'}) runs at PCIe {pcie_text(nic.pcie_width, nic.pcie_speed)} and"
                f" can {pcie_text(nic.pcie_width_max, nic.pcie_speed_max)}; move it to another slot, or look at the"
                " slot's settings in the BIOS"
            )


# -- router ------------------------------------------------------------------------------------------------------------

COMMAND_LIMIT = 10.0
"""Seconds that one command on the router may take."""


def _router(session: Session, traffic: bool, dry_run: bool) -> Iterator[Check]:
    """Yield those of the router, each after those it depends on; it is left as it was found."""
    file, access = session.plan.command_file, session.testbed.facts.router
    described = file is not None and not file.like
    yield from step("router changes", _left_changes(session))
    try:
        if session.router.is_black_box:
            session.router.connect()
            yield ok(f"{WHY_UNREAD}: no login, no ledger", name="router")
            yield from step("line rate", _line_rate(session, session.router.driver.link_states()))
        else:
            name = "router login"
            try:
                shell = session.router.log_in()
                yield ok(f"{access.user} at {access.address}:{access.port}; its host key is known", name=name)
                name = "router system"
                versions = session.router.connect(shell)
            except TestbedError as error:
                yield wrong(str(error), name=name)
                return
            software = versions.get("software", session.router.driver.description.title)
            yield ok(", ".join(filter(None, [software, versions.get("version")])), name=name)
            yield from step("router facts", _facts(session))
            if not described:
                yield from step("router rights", _rights(session))
            yield from step("router counters", _counters(session))
            yield from step("router interfaces", _interfaces(session, described))
            yield from step("router neighbours", _neighbours(session))
        if dry_run:
            yield from step("router configuration", _planned_changes(session))
        yield from step("power meter", _power(session))
        if traffic and session.generator.connected:
            yield from step("traffic", _traffic(session))
    finally:
        session.router.restore()


def _facts(session: Session) -> Iterator[Check]:
    facts, file = session.router.facts, session.plan.command_file
    yield from _machine(facts, {} if file and not file.like else facts.unread)
    if file and not file.like:
        for name, why in facts.unread.items():
            entry = f"'commands.{name}'"
            yield warning(why if entry in why else f"{why}; fix {entry} in variables/shells/{file.shell}.yaml")
    for nic in facts.nics:
        if nic.flow_control not in (None, "off"):
            yield warning(
                f"{nic.interface}: flow control is on ({nic.flow_control}), and a trial with pause frames does not"
                f" count; switch it off: 'ethtool -A {nic.interface} autoneg off rx off tx off' (Linux), 'sysctl"
                " dev.ix.0.fc=0' (FreeBSD)"
            )
    for difference in facts.differences:
        yield warning(f"{difference}; fix the router or the platform's file")


def _left_changes(session: Session) -> Iterator[Check]:
    name, plan = session.router.journal_name, session.plan
    again = f"lineproof restore {plan.testbed.testbed} --platform {plan.platform.platform}"
    leftovers = session.router.leftovers()
    for leftover in leftovers:
        other = f" as {leftover.occasion.router}" if leftover.occasion.router != name else ""
        remedy = "" if leftover.in_use else f"; the next run undoes them, or now: {again}"
        yield warning(f"{leftover}{other}{remedy}")
    if name and not leftovers:
        yield ok("none of an earlier run")


def _planned_changes(session: Session) -> Iterator[Check]:
    if session.plan.testbed.prepare == "none":
        yield ok("a run changes nothing: the testbed file says 'prepare: none'")
        return
    if not session.generator.connected:
        yield warning("what a run changes depends on the generator's ports, which cannot be read")
        return
    changes, lacking = session.router.planned_changes()
    file = session.plan.command_file
    first = [f"{' / '.join(file.save)}    (before them, so that they can be undone)"] if file and file.save else []
    count = f"a run makes {counted(len(changes), 'change')}, undone at its end; none was made now"
    lines = "\n           ".join([count, *first, *map(str, changes), *filter(None, [lacking])])
    yield (warning if lacking else ok)(lines)


def _rights(session: Session) -> Iterator[Check]:
    access, shell = session.testbed.facts.router, session.router.shell
    if not access.sudo and "uid=0(" not in shell("id", COMMAND_LIMIT).stdout:
        yield warning(f"'{access.user}' is not root, and the testbed file does not say 'sudo: true' for the router")
    elif access.sudo and (result := shell("sudo -n true", COMMAND_LIMIT)).status:
        why = (result.stderr or result.stdout).strip().partition("\n")[0] or f"status {result.status}"
        yield wrong(
            f"'sudo -n' is refused to '{access.user}' ({why}); allow it without a password (NOPASSWD in sudoers),"
            " or log in as root without 'sudo: true'"
        )
    else:
        yield ok(f"'{access.user}' may 'sudo -n'" if access.sudo else f"'{access.user}' is root")


def _counters(session: Session) -> Iterator[Check]:
    telemetry = session.router.watch.read()
    up = "its uptime is not read" if telemetry.uptime is None else f"it is up for {duration_text(telemetry.uptime)}"
    if unread := session.plan.uncounted:
        yield warning(f"{unread}: no ledger; {up}")
        return
    names = [side.interface for side in session.testbed.facts.sides]
    read = ((name, telemetry.interfaces[name]) for name in names)
    figures = ", ".join(f"{name} rx {counts.rx_packets} tx {counts.tx_packets}" for name, counts in read)
    yield ok(f"{figures}; {up}")


def _interfaces(session: Session, described: bool) -> Iterator[Check]:
    states = session.router.driver.link_states()
    ports = {port.index: port for port in session.generator.ports}
    if not described:
        for state, number in zip(states, session.testbed.facts.generator.ports, strict=True):
            yield _interface(session, state, ports.get(number))
    yield from step("line rate", _line_rate(session, states))


def _line_rate(session: Session, states: Sequence[LinkState]) -> Iterator[Check]:
    generator, plan = session.generator, session.plan
    # else the lines of the ports say so
    if generator.connected and not any(map(generator.slower_words, generator.ports)):
        note = check_line_rate(states, generator)
        speeds = " and ".join(si(speed, "bit/s") for speed in dict.fromkeys(plan.speeds(plan.testbed.pair_count)))
        yield warning(note) if note else ok(f"{speeds} by 'ports' of the platform, and each link shows the same")


def _interface(session: Session, state: LinkState, port: GeneratorPort | None) -> Check:
    name = f"router interface {state.interface}"
    endpoint = session.testbed.facts.generator
    if problem := wrong_destination(state, port, endpoint):
        return wrong(problem, name=name)
    asked = endpoint.next_hops.get(port.index) if port else None
    to = f", to which port {port.index} sends" if port and state.mac and port.destination else ""
    to = f"; port {port.index} asks {asked} ('next_hop') where to send" if port and asked else to
    speed = f"; at {si(state.speed_bps, 'bit/s')}" if state.speed_bps else ""
    shown = f"{state.mac or 'its MAC address is not reported'}{to}{speed}"
    if state.up is False:
        if session.plan.testbed.prepare == "configure":
            down = f"{shown}; down, and taken up for a run, which waits for its link each time: leave it up"
            return ok(down, name=name)
        return wrong("is down, and the testbed file says 'prepare: none'; take it up on the router", name=name)
    if state.carrier is False:
        # before it is configured an interface may show none although the cable is there; the port's link shows that
        no_link = f"{shown}; it shows no link; check the cable unless the router takes it up later"
        return warning(no_link, name=name)
    return ok(shown if state.up is None and state.carrier is None else f"{shown}; up", name=name)


def _neighbours(session: Session) -> Iterator[Check]:
    for entry in session.router.neighbours():
        name = f"router neighbour {entry.address}"
        known = f"{entry.mac} on {entry.found_at or entry.interface}" if entry.mac else "no entry"
        if session.plan.testbed.prepare == "configure":
            lasts = not entry.problem and entry.permanent
            yield ok(known + (", set for good" if lasts else "; set for a run ('prepare: configure')"), name=name)
        elif entry.problem:
            yield wrong(f"{entry.problem}; {entry.remedy or 'set it for good'}{WRONG_PEER}", name=name)
        elif entry.warning:
            yield warning(entry.warning, name=name)
        else:
            yield ok(f"{known}, set for good" if entry.permanent else known, name=name)


def _traffic(session: Session) -> Iterator[Check]:
    try:
        session.router.configure()
        session.traffic.check_reachability()
    finally:
        session.router.restore()
    yield ok("frames sent into each side came back at the other")


def _power(session: Session) -> Iterator[Check]:
    if session.plan.testbed.power is not None:
        watts, text = session.power.watts(), session.plan.power_text
        yield ok(f"{watts:.4g} W, {text}") if watts else warning(f"0 W, {text}; is the router plugged into it?")
