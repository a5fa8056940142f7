"""The part of ``lineproof doctor`` that is about the router: login, facts, rights, counters, interfaces, changes."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.neighbours import NeighbourEntry
from ..errors import TestbedError
from ..generators.base import GeneratorPort
from ..methods.budget import duration_text
from ..routers.base import Shell
from ..routers.black_box import WHY_UNREAD
from ..routers.link_state import LinkState
from ..session.leftovers import leftover_text
from ..session.links import wrong_destination
from ..session.router import WRONG_PEER, note_line_rate
from ..session.session import Session
from ..units import counted, si
from .host_checks import Check, facts_check, ok, or_wrong, pcie_checks, router_flow_control, warning, wrong

COMMAND_LIMIT = 10.0
"""Seconds that one command on the router may take."""


def router_checks(session: Session, traffic: bool, dry_run: bool) -> Iterator[Check]:
    """Yield those of the router, each after those it depends on; it is left as it was found."""
    if session.router.is_black_box:
        session.router.connect()
        yield ok("router", f"{WHY_UNREAD}: no login, no ledger")
        yield from or_wrong("line rate", lambda: list(_interfaces(session, described=True)))
        yield from or_wrong("power meter", lambda: _power(session))
        if traffic and session.generator.connected:
            yield from or_wrong("traffic", lambda: _traffic(session))
        return
    access = session.testbed.facts.router
    yield from or_wrong("router changes", lambda: _left_changes(session))
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
        yield from or_wrong("router terminal", lambda: _refused_first(session))
        yield from _facts(session)
        described = session.plan.command_file is not None
        if not described:
            yield from or_wrong("router rights", lambda: _rights(session, shell))
        yield from or_wrong("router counters", lambda: _counters(session))
        yield from or_wrong("router interfaces", lambda: list(_interfaces(session, described)))
        yield from or_wrong("router neighbours", lambda: _neighbours(session))
        yield from or_wrong("router configuration", lambda: _planned_changes(session, dry_run))
        yield from or_wrong("power meter", lambda: _power(session))
        if traffic and session.generator.connected:
            yield from or_wrong("traffic", lambda: _traffic(session))
    finally:
        session.router.restore()


def _refused_first(session: Session) -> list[Check]:
    file = session.plan.command_file
    return [
        warning(
            "router terminal",
            f"'{line}', which is typed first, is refused: '{refusal}'; fix 'terminal.first' in"
            f" variables/shells/{file.shell if file else '…'}.yaml",
        )
        for line, refusal in session.router.refused_first().items()
    ]


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
    yield from router_flow_control(session)
    for difference in facts.differences:
        yield warning("router facts", f"{difference}; fix the router or the platform's file")


def _left_changes(session: Session) -> list[Check]:
    name, plan = session.router.journal_name, session.plan
    again = f"lineproof restore {plan.testbed.testbed} --platform {plan.platform.platform}"
    left = []
    for found in session.router.leftovers():
        other = f" as {found.occasion.router}" if found.occasion and found.occasion.router != name else ""
        if found.in_use:
            text = f"a run of this machine has the router configured{other}: {found.occasion}"
            left.append(warning("router changes", text))
        elif found.changes:
            text = f"left by an earlier run{other}: {leftover_text(found)}; the next run undoes them, or now: {again}"
            left.append(warning("router changes", text))
    return left or ([ok("router changes", "none of an earlier run")] if name else [])


def _planned_changes(session: Session, dry_run: bool) -> list[Check]:
    name = "router configuration"
    if not dry_run:
        return []
    if session.plan.testbed.prepare == "none":
        return [ok(name, "a run changes nothing ('prepare: none')")]
    if not session.generator.connected:
        return [warning(name, "what a run changes depends on the generator's ports, which cannot be read")]
    changes, lacking = session.router.planned_changes()
    file = session.plan.command_file
    first = [f"{' / '.join(file.save)}    (before them, so that they can be undone)"] if file and file.save else []
    lines = "".join(f"\n           {line}" for line in (*first, *changes))
    found = f"a run makes {counted(len(changes), 'change')}, undone at its end; none was made now{lines}"
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
    up = "its uptime is not read" if telemetry.uptime is None else f"it is up for {duration_text(telemetry.uptime)}"
    if unread := session.plan.uncounted:
        return [warning("router counters", f"{unread}: no ledger; {up}")]
    names = [side.interface for side in session.testbed.facts.sides]
    read = ((name, telemetry.interfaces[name]) for name in names)
    figures = ", ".join(f"{name} rx {counts.rx_packets} tx {counts.tx_packets}" for name, counts in read)
    return [ok("router counters", f"{figures}; {up}")]


def _interfaces(session: Session, described: bool) -> Iterator[Check]:
    states = session.router.link_states()
    ports = {port.index: port for port in session.generator.ports}
    if not described:
        for state, number in zip(states, session.testbed.facts.generator.ports, strict=True):
            yield _interface(session, state, ports.get(number))
    if not session.generator.connected or any(port.contradicts(session.link_bps) for port in ports.values()):
        # the lines of the ports say so
        return
    try:
        note = note_line_rate(states, session.generator)
    except TestbedError as error:
        yield wrong("line rate", error)
    else:
        shown = f"{si(session.link_bps, 'bit/s')} by 'port_speed' of the platform, and each link shows the same"
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


def _neighbours(session: Session) -> list[Check]:
    return [_neighbour(session, found) for found in session.router.neighbours()]


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
