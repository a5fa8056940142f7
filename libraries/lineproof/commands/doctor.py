"""``lineproof doctor TESTBED --platform P``: is this testbed fit for a run? Step by step, without traffic."""

from __future__ import annotations

import argparse
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from statistics import median

from ..ceilings.cards import CardQuirk, PublishedLimits
from ..core.foreign import ForeignFrames, origins
from ..core.neighbours import NeighbourEntry
from ..core.router_facts import NicFacts, RouterFacts
from ..errors import LineproofError, TestbedError
from ..evidence.forms import known_facts, pcie_text
from ..files import require_folder
from ..generators.abilities import WORDS
from ..generators.base import GeneratorPort
from ..generators.trex.driver import TrexGenerator
from ..methods.budget import duration_text
from ..project import Project
from ..routers.base import LinkState
from ..routers.none import WHY_UNREAD
from ..session.links import dropped_by_card, wrong_destination
from ..session.plan import Plan
from ..session.router import WRONG_PEER, leftover_text, note_line_rate
from ..session.session import Session
from ..testbed.settings import HardwareSettings
from ..units import counted, si
from ..visible import shortened
from .arguments import add_json, add_plan_arguments, complete_names, number, print_lines, say
from .calibrate import GOAL, folder

SMALLEST_ON_WIRE = 84
"""Bytes of the smallest frame on the wire: 64, preamble and the gap between frames."""

LISTEN_SECONDS = 10.0
"""Seconds without traffic, of the testbed's clock: five of spanning tree's hellos, and some of most other talk."""

KEPT_FRAMES = 500
"""Frames of each port that are looked at."""


class State(Enum):
    """The result of a check: nothing to do; a run is possible, and something should be fixed; a run would fail."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Check:
    """One line. ``finding``: what was found, and what to do if something is wrong.

    ``details``: what the line leaves out, as a figure's source; ``--json`` has it.
    """

    state: State
    name: str
    finding: str
    details: object = ""

    def __str__(self) -> str:
        return f"{self.state.value:<8} {self.name}: {self.finding}"


ok, warning, wrong = partial(Check, State.OK), partial(Check, State.WARNING), partial(Check, State.WRONG)


def or_wrong(name: str, checks: Iterator[Check]) -> Iterator[Check]:
    """*checks*, up to a TestbedError of theirs, which is one that is wrong."""
    try:
        yield from checks
    except TestbedError as error:
        yield wrong(name, str(error))


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
    lines = [*map(str, done), counts] if arguments.json else [counts]
    rows = [
        {"check": check.name, "state": check.state.value, "finding": check.finding, "details": str(check.details)}
        for check in done
    ]
    data = {"testbed": arguments.testbed, "platform": arguments.platform, "checks": rows}
    print_lines(lines, data, arguments.json)
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
    except LineproofError as error:
        yield wrong("files", str(error))
        return
    yield ok(
        "files",
        f"{plan.platform.description}, {plan.software_name} {plan.software.version}; {plan.testbed.kind} testbed",
    )
    for misfit in plan.misfits():
        yield (wrong if misfit.certain else warning)("addresses", plan.misfit_words(misfit))
    try:
        session = Session.start(plan, say=say)
    except LineproofError as error:
        yield wrong("testbed", str(error))
        return
    with closing(session):
        known = session.simulated
        if known:
            yield _simulated(session)
        yield from host_checks(session)
        yield from or_wrong("generator", _generator(session))
        if session.generator.connected and arguments.listen:
            yield from or_wrong("noise", noise_checks(session, arguments.listen))
        yield from router_checks(session, arguments.traffic, arguments.dry_run)
        if session.simulated and not known:
            yield _simulated(session)
        if session.generator.connected:
            yield _calibration(session)


def _simulated(session: Session) -> Check:
    return warning("testbed", f"SIMULATED: {session.simulation_text}; nothing measured on it is a measurement")


# -- generator ---------------------------------------------------------------------------------------------------------


def _generator(session: Session) -> Iterator[Check]:
    access = session.testbed.facts.generator
    if access.trex and access.trex.force:
        # a check must not take ports from other users
        access = replace(access, trex=replace(access.trex, force=False))
        session.testbed.facts = replace(session.testbed.facts, generator=access)
        yield warning("generator", "'force: true': a run takes the ports from other users; not done here")
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
    yield ok("generator", f"{server}; no other user held ports {' and '.join(str(port.index) for port in ports)}")
    if isinstance(driver := session.generator.driver, TrexGenerator):
        yield _distance(median(driver.round_trips()))
    if lacking := session.plan.abilities.lacking:
        words = "; ".join(WORDS[name] for name in lacking)
        kind = session.plan.testbed.generator_type
        yield warning("generator", f"'{kind}' {words}; sentences that need it are refused before any traffic")
    if leftover := versions.get("leftover"):
        yield warning("leftovers", f"{leftover}; nothing more to do")
    # the wires between interfaces of one machine filter nothing
    filtered = isinstance(session.plan.testbed, HardwareSettings)
    addressed = dict(zip(access.ports, (side.peer_mac for side in session.router.sides()), strict=True))
    for port in ports:
        yield _port(session, port)
        yield from flow_control_check(port)
        if filtered:
            yield from filter_check(port, addressed[port.index])
    yield from _card(session)
    yield from firmware_checks(session)
    yield from latency_check(session)


def _port(session: Session, port: GeneratorPort) -> Check:
    name = f"port {port.index}"
    if not port.link_up and session.plan.testbed.prepare == "configure":
        return warning(name, "has no link; check the cable, unless the router takes its interface up for a run only")
    if not port.link_up:
        return wrong(name, "has no link; check the cable and the router's port")
    if slower := session.generator.slower_words(port):
        return wrong(name, slower)
    said = f"link up at {port.speed_text}, {port.mac}, driver {port.driver or 'not reported'}"
    said += f", {counted(len(port.cores), 'core')} for its pair" if port.cores else ""
    return ok(name, said if port.numa is None else f"{said}, NUMA node {port.numa}")


def _card(session: Session) -> Iterator[Check]:
    known = session.generator.known_limits
    if known is None or known.card is None:
        yield warning("card", str(known or "the generator's ports could not be asked"))
        return
    yield ok("card", str(known))
    card = known.card
    for lacking in known.lacking_latency:
        of_frames = f" of {', '.join(lacking.frames)} frames" if lacking.frames else ""
        found = f"it measures no latency{of_frames}; where a sentence asks for that: {lacking.remedy}"
        yield warning("card", found, lacking.source)
    if card.flow_stats is not None and card.flow_stats.servers.include(known.server) and not known.software:
        bytes_too = "" if card.flow_stats.counts_bytes else ", without their bytes"
        counts = f"it counts {card.flow_stats.streams} streams at a time{bytes_too}"
        yield ok("card", counts, card.flow_stats.source)
    for quirk in card.quirks:
        if quirk.servers.include(known.server):
            yield _quirk(session, known, quirk)


def _quirk(session: Session, known: PublishedLimits, quirk: CardQuirk) -> Check:
    """A warning where it may matter at the testbed's rates, and no calibration says what the generator carries."""
    most, headroom = known.link_bps / (8 * SMALLEST_ON_WIRE), session.generator.headroom
    measured = headroom is not None and not headroom.why_unfit
    if quirk.above_pps is None or most <= quirk.above_pps or measured:
        return ok("card", quirk.quirk, quirk.source)
    line = f"the line rate is {si(most, 'pps')} of 64-byte frames: calibrate before you believe a FAIL above"
    return warning("card", f"{quirk.quirk}; {line} {si(quirk.above_pps, 'pps')}", quirk.source)


def _calibration(session: Session) -> Check:
    found = session.generator.headroom
    if found is None:
        again = f"lineproof calibrate {session.plan.testbed.testbed} --platform {session.plan.platform.platform}"
        return warning("calibration", f"none: what the generator itself loses is not known; {again}")
    return warning("calibration", str(found)) if found.why_unfit or found.why_stale else ok("calibration", str(found))


# -- the generator's host, noise and flow control ----------------------------------------------------------------------

LINE = 200
"""Characters of facts on one line."""


def host_checks(session: Session) -> Iterator[Check]:
    """Yield what the generator's host showed before anything was started on it; nothing where there is no way to it."""
    host = session.testbed.host
    if host is None:
        return
    if host.problem:
        yield warning("generator host", f"what it is is not read: {host.problem}")
        return
    yield facts_check("generator host", host.facts)
    for nic in host.facts.nics:
        yield from pcie_checks("generator host", nic)


def facts_check(name: str, facts: RouterFacts, described: bool = False) -> Check:
    """The facts of a machine, as much as one line takes; all are in the details.

    *described*: the commands without an answer are told elsewhere.
    """
    rows = [f"{fact}: {value}" for fact, value in known_facts(facts).items()]
    words = shortened("; ".join(rows), LINE) or "none"
    unread = {} if described else facts.unread
    if unread:
        words += f"; {counted(len(unread), 'command')} gave no answer, which no verdict needs"
    silent = (f"no answer to '{command}': {why}" for command, why in unread.items())
    return ok(name, words, "\n".join((*rows, *silent)))


def pcie_checks(name: str, nic: NicFacts) -> Iterator[Check]:
    """A card whose PCIe link is narrower or slower than it can be."""
    pairs = ((nic.pcie_width, nic.pcie_width_max), (nic.pcie_speed, nic.pcie_speed_max))
    if any(has is not None and wants is not None and has < wants for has, wants in pairs):
        yield warning(
            name,
            f"{nic.interface} ({nic.model or 'card'}) runs at PCIe {pcie_text(nic.pcie_width, nic.pcie_speed)} and can"
            f" {pcie_text(nic.pcie_width_max, nic.pcie_speed_max)}; move it to another slot, or look at the slot's"
            " settings in the BIOS",
        )


def firmware_checks(session: Session) -> Iterator[Check]:
    """The firmware of the generator's cards, compared with what the card's file knows of it under this TRex."""
    host, known = session.testbed.host, session.generator.known_limits
    if host is None or known is None or known.card is None:
        return
    card = known.card
    nics = {nic.interface: nic for nic in host.facts.nics}
    for port in session.generator.ports:
        held = nics.get(port.pci.lower())
        if held is None:
            continue
        name, firmware = f"port {port.index}", held.firmware
        if firmware is None:
            if card.firmware:
                yield ok(
                    name,
                    f"the firmware of {held.interface} is not read: {held.driver or 'no driver'} holds the card, and"
                    " only Linux's own driver shows it (./dpdk_setup_ports.py -L gives the card back)",
                )
            continue
        facts = card.firmware_facts(firmware, known.server)
        for fact in facts:
            yield warning(name, f"firmware {firmware}: {fact.problem}; {fact.remedy}", fact.source)
        if not facts:
            yield ok(name, f"firmware {firmware}" + (": nothing is known against it" if card.firmware else ""))


TRIAL_REQUESTS, FAR = 20, 0.005
"""Round trips that a trial waits for beside its sending; s of one that are worth a warning."""


def _distance(seconds: float) -> Check:
    words = f"{1e3 * seconds:.3g} ms to the server and back: {TRIAL_REQUESTS * seconds:.2g} s of each trial"
    if seconds < FAR:
        return ok("distance", words)
    return warning("distance", f"{words}, and trials are longer where its clock decides; a nearer machine is faster")


def latency_check(session: Session) -> Iterator[Check]:
    """Return whether TRex counts latency in fine histograms; nothing of another generator."""
    driver = session.generator.driver
    if not isinstance(driver, TrexGenerator):
        return
    try:
        fine = driver.has_fine_latency(session.plan.probe[0])
    except TestbedError as error:
        yield warning("latency", f"how finely it is counted is not known: {error}")
        return
    if fine:
        yield ok("latency", "counted in histograms of three digits")
    else:
        yield warning(
            "latency",
            "counted in histograms of one digit, so limits near a router's figure are INCONCLUSIVE: end TRex, and start"
            " it with --hdrh",
        )


def noise_checks(session: Session, seconds: float) -> Iterator[Check]:
    """Yield what comes in *seconds* in which nothing is sent."""
    heard = session.traffic.listen(seconds, KEPT_FRAMES)
    budget = ForeignFrames({port: one.frames for port, one in heard.items()}, seconds)
    for port, one in heard.items():
        if not one.frames:
            yield ok("noise", f"port {port}: no frame came in {seconds:g} s without traffic")
            continue
        named = origins(one.kept, seconds) or f"{one.frames} frames that were not captured"
        more = f", and more ({one.frames} frames in all)" if one.frames > len(one.kept) else ""
        expected = budget.budget(port, 10.0)
        yield warning(
            "noise",
            f"port {port}: {named}{more}; a trial of 10 s may count {expected} of them, and as many lost ones may hide"
            " behind them: silence the sender",
        )


def flow_control_check(port: GeneratorPort) -> Iterator[Check]:
    """Return whether *port* obeys or sends pause frames, as far as its driver can tell."""
    if port.flow_control in (None, "off"):
        return
    remedy = f"'portattr -p {port.index} --fc none' in TRex's console, or 'ethtool -A DEV rx off tx off' on its host"
    yield warning(f"port {port.index}", f"flow control is on ({port.flow_control}); switch it off: {remedy}")


def filter_check(port: GeneratorPort, addressed: str) -> Iterator[Check]:
    """Return whether the card of *port* drops what the router sends to the MAC address *addressed*."""
    if words := dropped_by_card(port, addressed):
        yield warning(f"port {port.index}", words)


# -- router ------------------------------------------------------------------------------------------------------------

COMMAND_LIMIT = 10.0
"""Seconds that one command on the router may take."""


def router_checks(session: Session, traffic: bool, dry_run: bool) -> Iterator[Check]:
    """Yield those of the router, each after those it depends on; it is left as it was found."""
    described, access = session.plan.command_file is not None, session.testbed.facts.router
    yield from or_wrong("router changes", _left_changes(session))
    try:
        if session.router.is_black_box:
            session.router.connect()
            yield ok("router", f"{WHY_UNREAD}: no login, no ledger")
            yield from or_wrong("line rate", _interfaces(session, described=True))
        else:
            step = "router login"
            try:
                shell = session.router.log_in()
                yield ok(step, f"{access.user} at {access.host}:{access.port}; its host key is known")
                step = "router system"
                versions = session.router.connect(shell)
            except TestbedError as error:
                yield wrong(step, str(error))
                return
            yield ok(step, ", ".join(versions[key] for key in ("software", "version") if key in versions))
            yield from or_wrong("router terminal", _refused_first(session))
            yield from _facts(session)
            if not described:
                yield from or_wrong("router rights", _rights(session))
            yield from or_wrong("router counters", _counters(session))
            yield from or_wrong("router interfaces", _interfaces(session, described))
            yield from or_wrong(
                "router neighbours", (_neighbour(session, entry) for entry in session.router.neighbours())
            )
            if dry_run:
                yield from or_wrong("router configuration", _planned_changes(session))
        yield from or_wrong("power meter", _power(session))
        if traffic and session.generator.connected:
            yield from or_wrong("traffic", _traffic(session))
    finally:
        session.router.restore()


def _refused_first(session: Session) -> Iterator[Check]:
    file = session.plan.command_file
    for line, refusal in session.router.refused_first().items():
        yield warning(
            "router terminal",
            f"'{line}', which is typed first, is refused: '{refusal}'; fix 'terminal.first' in"
            f" variables/shells/{file.shell if file else '…'}.yaml",
        )


def _facts(session: Session) -> Iterator[Check]:
    facts = session.router.facts
    file = session.plan.command_file
    yield facts_check("router facts", facts, described=file is not None)
    if file:
        for name, why in facts.unread.items():
            entry = f"'commands.{name}'"
            found = why if entry in why else f"{why}; fix {entry} in variables/shells/{file.shell}.yaml"
            yield warning("router facts", found)
    for nic in facts.nics:
        yield from pcie_checks("router facts", nic)
        if nic.flow_control not in (None, "off"):
            yield warning(
                "router facts",
                f"{nic.interface}: flow control is on ({nic.flow_control}), and a trial with pause frames does not"
                f" count; switch it off: 'ethtool -A {nic.interface} autoneg off rx off tx off' (Linux), 'sysctl"
                " dev.ix.0.fc=0' (FreeBSD)",
            )
    for difference in facts.differences:
        yield warning("router facts", f"{difference}; fix the router or the platform's file")


def _left_changes(session: Session) -> Iterator[Check]:
    name, plan = session.router.journal_name, session.plan
    again = f"lineproof restore {plan.testbed.testbed} --platform {plan.platform.platform}"
    leftovers = session.router.leftovers()
    for found in leftovers:
        other = f" as {found.occasion.router}" if found.occasion and found.occasion.router != name else ""
        if found.in_use:
            text = f"a run of this machine has the router configured{other}: {found.occasion}"
            yield warning("router changes", text)
        elif found.changes:
            text = f"left by an earlier run{other}: {leftover_text(found)}; the next run undoes them, or now: {again}"
            yield warning("router changes", text)
    if name and not any(found.in_use or found.changes for found in leftovers):
        yield ok("router changes", "none of an earlier run")


def _planned_changes(session: Session) -> Iterator[Check]:
    name = "router configuration"
    if session.plan.testbed.prepare == "none":
        yield ok(name, "a run changes nothing ('prepare: none')")
        return
    if not session.generator.connected:
        yield warning(name, "what a run changes depends on the generator's ports, which cannot be read")
        return
    changes, lacking = session.router.planned_changes()
    file = session.plan.command_file
    first = [f"{' / '.join(file.save)}    (before them, so that they can be undone)"] if file and file.save else []
    lines = "".join(f"\n           {line}" for line in (*first, *changes))
    found = f"a run makes {counted(len(changes), 'change')}, undone at its end; none was made now{lines}"
    yield warning(name, f"{found}\n           {lacking}") if lacking else ok(name, found)


def _rights(session: Session) -> Iterator[Check]:
    name, access, shell = "router rights", session.testbed.facts.router, session.router.shell
    if access.sudo:
        result = shell("sudo -n true", COMMAND_LIMIT)
        if result.status:
            why = (result.stderr or result.stdout).strip().partition("\n")[0] or f"status {result.status}"
            yield wrong(
                name,
                f"'sudo -n' is refused to '{access.user}' ({why}); allow it without a password (NOPASSWD in sudoers),"
                " or log in as root without 'sudo: true'",
            )
        else:
            yield ok(name, f"'{access.user}' may 'sudo -n'")
    elif "uid=0(" in shell("id", COMMAND_LIMIT).stdout:
        yield ok(name, f"'{access.user}' is root")
    else:
        words = f"'{access.user}' is not root, and the testbed file does not say 'sudo: true' for the router"
        yield warning(name, words)


def _counters(session: Session) -> Iterator[Check]:
    telemetry = session.router.watch.read()
    up = "its uptime is not read" if telemetry.uptime is None else f"it is up for {duration_text(telemetry.uptime)}"
    if unread := session.plan.uncounted:
        yield warning("router counters", f"{unread}: no ledger; {up}")
        return
    names = [side.interface for side in session.testbed.facts.sides]
    read = ((name, telemetry.interfaces[name]) for name in names)
    figures = ", ".join(f"{name} rx {counts.rx_packets} tx {counts.tx_packets}" for name, counts in read)
    yield ok("router counters", f"{figures}; {up}")


def _interfaces(session: Session, described: bool) -> Iterator[Check]:
    states = session.router.link_states()
    ports = {port.index: port for port in session.generator.ports}
    if not described:
        for state, number in zip(states, session.testbed.facts.generator.ports, strict=True):
            yield _interface(session, state, ports.get(number))
    if not session.generator.connected or any(map(session.generator.slower_words, ports.values())):
        # the lines of the ports say so
        return
    try:
        note = note_line_rate(states, session.generator)
    except TestbedError as error:
        yield wrong("line rate", str(error))
    else:
        plan = session.plan
        speeds = " and ".join(si(speed, "bit/s") for speed in dict.fromkeys(plan.speeds(plan.testbed.pair_count)))
        shown = f"{speeds} by 'ports' of the platform, and each link shows the same"
        yield warning("line rate", note) if note else ok("line rate", shown)


def _interface(session: Session, state: LinkState, port: GeneratorPort | None) -> Check:
    name = f"router interface {state.interface}"
    endpoint = session.testbed.facts.generator
    if words := wrong_destination(state, port, endpoint):
        return wrong(name, words)
    asked = endpoint.next_hops.get(port.index) if port else None
    to = f", to which port {port.index} sends" if port and state.mac and port.destination else ""
    to = f"; port {port.index} asks {asked} ('next_hop') where to send" if port and asked else to
    speed = f"; at {si(state.speed_bps, 'bit/s')}" if state.speed_bps else ""
    found = f"{state.mac or 'its MAC address is not reported'}{to}{speed}"
    if state.up is False:
        if session.plan.testbed.prepare == "configure":
            return ok(name, f"{found}; down, and taken up for a run, which waits for its link each time: leave it up")
        return wrong(name, "is down, and the testbed file says 'prepare: none'; take it up on the router")
    if state.carrier is False:
        # before it is configured an interface may show none although the cable is there; the port's link shows that
        return warning(name, f"{found}; it shows no link; check the cable unless the router takes it up later")
    return ok(name, found if state.up is None and state.carrier is None else f"{found}; up")


def _neighbours(session: Session) -> Iterator[Check]:
    for entry in session.router.neighbours():
        yield _neighbour(session, entry)


def _neighbour(session: Session, found: NeighbourEntry) -> Check:
    name = f"router neighbour {found.address}"
    known = f"{found.mac} on {found.found_at or found.interface}" if found.mac else "no entry"
    if session.plan.testbed.prepare == "configure":
        lasting = not found.problem and found.permanent
        return ok(name, f"{known}, set for good" if lasting else f"{known}; set for a run ('prepare: configure')")
    if found.problem:
        return wrong(name, f"{found.problem}; {found.remedy or 'set it for good'}{WRONG_PEER}")
    if found.ages:
        return warning(name, f"{found.ages}; {found.remedy} for good")
    return ok(name, f"{known}, set for good" if found.permanent else known)


def _traffic(session: Session) -> Iterator[Check]:
    try:
        session.router.configure()
        session.traffic.check_reachability()
    finally:
        session.router.restore()
    yield ok("traffic", "frames sent into each side came back at the other")


def _power(session: Session) -> Iterator[Check]:
    if session.plan.testbed.power is None:
        return
    watts, text = session.power.watts(), session.plan.power_text
    if watts:
        yield ok("power meter", f"{watts:.4g} W, {text}")
    else:
        yield warning("power meter", f"0 W, {text}; is the router plugged into it?")
