"""The router's end of a session: logged in to, configured, read, reset, and left as it was found."""

from __future__ import annotations

import contextlib
import logging
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

from ..core.router_facts import RouterFacts, RouterSetUp
from ..core.telemetry import LinkState, NeighbourEntry, Side
from ..core.traffic.frame_kinds import FrameKinds, NotForwarded
from ..errors import TestbedError
from ..routers import make_router
from ..routers.changes import RESTORE_LIMIT
from ..routers.described import Router
from ..routers.journal import Change, ChangeJournal, Leftover, MadeChanges, Occasion, has_journals, look
from ..routers.none import no_shell
from ..simulation import InjectedFault, parse_fault
from ..system.ssh import Connection
from ..system.ssh_shell import Shell, SshShell
from ..testbed.opening import OpenTestbed
from ..testbed.settings import HardwareSettings, NetnsSettings
from ..units import si
from .generator import GeneratorConnection
from .links import LinkWait, ipv6_sides, is_down
from .plan import Plan
from .router_watch import NamedRouter, RouterRestarted, RouterWatch

T = TypeVar("T")

log = logging.getLogger("lineproof.router")

WRONG_PEER = "; if the router's next hop is another address, fix 'peer' of 'sides' in the testbed's file"

RESET_LIMIT = 10.0
"""Seconds that a command which restarts the router may take to return."""


@dataclass
class RouterConnection:
    """The router of *testbed*, cabled to the ports of *generator*. *cause_fault*: makes a simulated one fail."""

    plan: Plan
    testbed: OpenTestbed
    generator: GeneratorConnection
    cause_fault: Callable[[InjectedFault], None]
    _watch: RouterWatch | None = field(default=None, repr=False)
    _shell: Shell | None = field(default=None, repr=False)
    _ssh: SshShell | None = field(default=None, repr=False)
    versions: Mapping[str, str] = field(default_factory=dict)
    """The versions that it reports; none before :meth:`connect`."""
    _journal: ChangeJournal | None = field(default=None, repr=False)
    _undone: str = ""
    afterwards: list[str] = field(default_factory=list)
    """Findings when it was restored, and what may be left on it: evidence, each a sentence."""
    _facts: RouterFacts | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()
    """Findings of :meth:`configure` that will make trouble later, in words."""
    line_rate_note: str = ""
    """The links whose speed neither end shows, in words."""
    _links_known: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        self.links = LinkWait(self.plan.link_wait, self.plan.testbed.link_wait)

    def log_in(self) -> Shell:
        """Return the router's shell over SSH. Raises TestbedError in one sentence."""
        self._log_out()
        # kept before it is open: a login that comes after its limit is ended by the next one, or by restore()
        file = self.plan.command_file
        self._ssh = ssh = SshShell(self.testbed.facts.router, None if file is None else file.terminal)
        ssh.open()
        self._shell = ssh
        return ssh

    def connect(self, shell: Shell | None = None) -> Mapping[str, str]:
        """Connect to the router through *shell* (None: over SSH); returns the versions that it reports.

        Raises TestbedError.
        """
        facts, file = self.testbed.facts, self.plan.command_file
        self._shell = no_shell if self.is_black_box else shell or self._shell or self.log_in()
        interfaces = tuple(side.interface for side in facts.sides)
        router = make_router(self.plan.software.shell, self._shell, interfaces, sudo=facts.router.sudo, file=file)
        router = cast(Router, NamedRouter(router, facts.router.where)) if facts.router.where else router
        step = file.commands.uptime.step if file and file.commands.uptime else 0.0
        self._watch = RouterWatch(router, facts.clock_speed, self.testbed.problems, step)
        self.versions, self._facts = router.identify(), None
        return self.versions

    @property
    def facts(self) -> RouterFacts:
        """Facts of the router as it was configured, which changes some: read when they are first asked for since."""
        if self._facts is None and self.connected:
            software = self.plan.software
            self._facts = self.driver.facts().beside(software.version, software.workers, software.rx_queues)
        return self._facts or RouterFacts()

    @property
    def is_black_box(self) -> bool:
        """Return whether nobody logs in to it: its platform's software has ``shell: none``."""
        return self.plan.software.is_black_box

    @property
    def connected(self) -> bool:
        """Return whether :meth:`connect` was called."""
        return self._watch is not None

    @property
    def driver(self) -> Router:
        """The router. Raises TestbedError if none is connected."""
        return self.watch.router

    @property
    def connection(self) -> Connection | None:
        """Return its connection of SSHLibrary; None where nobody logs in."""
        return None if self._ssh is None else self._ssh.connection

    @property
    def shell(self) -> Shell:
        """Return its shell. Raises TestbedError if none is connected."""
        return _required(self._shell)

    @property
    def watch(self) -> RouterWatch:
        """Return its readings. Raises TestbedError if none is connected."""
        return _required(self._watch)

    @property
    def restarted(self) -> bool:
        """Return whether it has restarted since it was configured."""
        return self._watch is not None and self._watch.restarted

    @property
    def restarts(self) -> int:
        """How many restarts of it were noticed."""
        return self._watch.restarts if self._watch else 0

    @property
    def not_forwarded(self) -> NotForwarded:
        """Which frames it cannot forward, and what it lacks; nothing where none is connected."""
        return self.driver.not_forwarded if self.connected else {}

    # -- configured ----------------------------------------------------------------------------------------------------

    def configure(self, links_moved: bool = False) -> None:
        """Set addresses, static neighbours and routes, if the testbed has ``prepare: configure``.

        What an earlier run has left there is undone first, in any case. Then both ends of each link are awaited, the
        longer if links were brought up (*links_moved*: they were in any case), and its neighbours are checked. Raises
        TestbedError.
        """
        self.undo_leftover()
        before = self.driver.changes
        self.prepare_configuration()()
        # a router may negotiate its links anew at any change
        changed = not set(self.driver.changes) <= set(before)
        if changed or links_moved or (self.generator.started and not self._links_known):
            self.links.begin()
        if self.plan.testbed.prepare == "configure":
            self.watch.configured()
        states = list[LinkState]()

        def ends() -> dict[str, bool]:
            states[:] = self.driver.link_states()
            return {f"the router's {state.interface}": not is_down(state) for state in states} | self.generator.links()

        self.links.await_all(ends)
        self.generator.check_links()
        self.line_rate_note = check_line_rate(states, self.generator)
        self._links_known, self._facts = True, None
        self._check_neighbours()

    def prepare_configuration(self) -> Callable[[], None]:
        """Return what :meth:`configure` does on the router, to be called later; the generator is asked now."""
        if self.plan.testbed.prepare != "configure":
            return lambda: None
        sides = self._connected_sides()

        def configure() -> None:
            self.begin_changes()
            self._set_up(sides)

        return configure

    def planned_changes(self) -> tuple[tuple[Change, ...], str]:
        """Return what :meth:`configure` would change on the router now, and why the list is not whole ("": it is).

        Nothing is changed. Raises TestbedError if the generator's ports or the router cannot be read.
        """
        sides = self._connected_sides()
        with self.driver.rehearsal() as rehearsal:
            try:
                self._set_up(sides)
            except TestbedError as error:
                if not rehearsal.pending:
                    raise
                return rehearsal.pending, f"what follows depends on what these do: {error}"
        return rehearsal.pending, ""

    def _set_up(self, sides: tuple[Side, ...]) -> None:
        router, testbed = self.driver, self.plan.testbed
        if not self.testbed.facts.simulated:
            router.tune(self.plan.software.tuning)
        router.configure(sides)
        if testbed.set_up and not self.testbed.facts.simulated:
            router.configure_frames(sides, FrameKinds.of(self.plan.catalogue, testbed.set_up))

    def _connected_sides(self) -> tuple[Side, ...]:
        """Return :meth:`sides`. Raises TestbedError if no generator is connected."""
        _ = self.generator.driver
        return self.sides()

    def sides(self) -> tuple[Side, ...]:
        """Return the testbed's sides, with the MAC addresses of the generator's ports, if one is connected."""
        macs = {port.index: port.mac for port in self.generator.ports}
        facts = self.testbed.facts
        return tuple(
            side if side.peer_mac else replace(side, peer_mac=macs.get(index, ""))
            for side, index in zip(facts.sides, facts.generator.ports, strict=True)
        )

    def configuration(self) -> RouterSetUp:
        """Return the router's configuration, as the router shows it now. Raises TestbedError."""
        set_up = self.driver.settings() if self.connected else RouterSetUp()
        shown = " ".join((*set_up.seen, *set_up.unchecked, *set_up.there))

        def parts(side: Side, is_there: bool) -> str:
            """Return those of the side's address and network which the router shows, or the others."""
            named = {side.address: side.address, side.network: f"{side.network} via {side.peer}"}
            return ", ".join(noted for value, noted in named.items() if _is_named(value, shown) == is_there)

        there, stated = (
            tuple(f"{side.interface}: {noted}" for side in self.testbed.facts.sides if (noted := parts(side, is_there)))
            for is_there in (True, False)
        )
        waited = f"links were awaited{noted}" if (noted := self.links.noted_words) else ""
        notes = tuple(filter(None, [self._undone, *set_up.notes, waited, self.line_rate_note]))
        return replace(set_up, prepare=self.plan.testbed.prepare, sides=there, stated=stated, notes=notes)

    # -- its neighbours, and why nothing comes through -----------------------------------------------------------------

    def neighbours(self) -> tuple[NeighbourEntry, ...]:
        """Return the router's entries of the generator's ports; none where they cannot be read. Raises TestbedError."""
        sides = self.sides()
        entries = self.driver.neighbours(sides)
        if self.plan.testbed.prepare == "configure" or not entries:
            return entries
        # nothing shows whether more are wanted
        ipv6 = self.driver.neighbours(ipv6_sides(sides, self.plan.catalogue))
        return (*entries, *(entry for entry in ipv6 if entry.mac))

    def _check_neighbours(self) -> None:
        """Raise TestbedError for a neighbour that is missing or wrong; from now on they are in each last reading."""
        entries, sides = self.neighbours(), self.sides()
        there = {entry.address for entry in entries}
        ipv6 = (side for side in ipv6_sides(sides, self.plan.catalogue) if side.peer in there)
        self.watch.sides = (*sides, *ipv6) if entries else ()
        if bad := [f"{entry.problem}; {entry.remedy or 'set it for good'}" for entry in entries if entry.problem]:
            hint = "" if self.plan.testbed.prepare == "configure" else WRONG_PEER
            raise TestbedError("; ".join(bad) + hint)
        self.warnings = tuple(entry.warning for entry in entries if entry.warning)

    def trouble(self) -> str:
        """Return why nothing can come through, as the router itself shows it; "": it answers, and shows nothing."""
        if not self.connected or self.is_black_box:
            return ""
        try:
            self.watch.read_again()
            states, entries = self.driver.link_states(), self.neighbours()
        except RouterRestarted as error:
            return str(error)
        except TestbedError as error:
            return f"the router does not answer: {error}"
        down = {
            state.interface: "is down" if state.up is False else "has no link" for state in states if is_down(state)
        }
        troubles = [f"the router's {name} {words}" for name, words in down.items()]
        troubles += [entry.problem for entry in entries if entry.problem]
        if not troubles:
            with contextlib.suppress(TestbedError):  # a look that fails shows nothing
                troubles = [f"the router does not show any more: {change}" for change in self.driver.taken_back()]
        return "; ".join(troubles)

    # -- the journal of its changes ------------------------------------------------------------------------------------

    @property
    def journal_name(self) -> str:
        """Whose journal it has: ``host:port``. "" if its changes end with it, or there are none."""
        lasting = isinstance(self.plan.testbed, HardwareSettings) and not self.is_black_box
        return self.testbed.facts.router.where if lasting else ""

    @property
    def host_key(self) -> str:
        """The fingerprint of its first host key. "" of a router that ends with the run, whose key is a new one."""
        ssh = self.connection if self.journal_name else None
        return ssh.host_keys()[1] if ssh is not None and ssh.is_open else ""

    def leftovers(self) -> tuple[Leftover, ...]:
        """Return changes that earlier runs left on this router, recognised by its host keys at any address.

        Where this machine has a journal of any router, it is logged in to for them. Raises TestbedError.
        """
        if not self.journal_name or not has_journals():
            return ()
        if not self.host_key:
            self.log_in()
        # keys of one router lead to one journal
        return tuple(dict.fromkeys(filter(None, map(look, sorted(_required(self.connection).host_keys())))))

    def undo_leftover(self, asked: bool = False) -> str:
        """Undo what an earlier run has left on it; returns a sentence, "" if nothing. *asked*: by a person.

        Raises TestbedError if something stays, or another process of this machine has it configured.
        """
        if self._journal is None and self.leftovers():
            self.begin_changes(asked)
        return self._undone

    def begin_changes(self, asked: bool = False) -> None:
        """From now on have each change in the router's journal. Raises TestbedError as :meth:`undo_leftover`."""
        if not self.journal_name or self._journal is not None:
            return
        self.driver.read()  # logs in again if the link has dropped
        occasion = Occasion(self.journal_name, self.plan.software.shell)
        journal = ChangeJournal.claim(occasion, *_required(self.connection).host_keys())
        try:
            self._undone = undo_leftover(journal, self.driver, asked)
        except BaseException:
            journal.close()
            raise
        self._journal = journal
        self.driver.keep_journal(journal)

    # -- the end -------------------------------------------------------------------------------------------------------

    def check_resettable(self) -> None:
        """Raise TestbedError if the router cannot be restarted."""
        if isinstance(self.plan.testbed, NetnsSettings):
            raise TestbedError(
                f"the router of testbed '{self.plan.testbed.testbed}' is this machine's kernel, which is not reset;"
                " expected a testbed of hardware, or a simulated one"
            )

    def reset(self, command: str = "") -> None:
        """Restart the router by its own *command*, as ``sudo reboot``; a simulated one without. Raises TestbedError."""
        self.check_resettable()
        if not command and self.testbed.facts.simulated:
            self.cause_fault(parse_fault("router reboot", start=0))
            return
        if not command:
            raise TestbedError("a reset needs the command that restarts the router; expected 'sudo reboot'")
        shell = self.shell
        try:
            result = shell(command, RESET_LIMIT)
        except TestbedError:
            return  # it went down during the command
        if result.status != 0:
            raise TestbedError(f"'{command}' ended with status {result.status} on the router: {result.stderr.strip()}")
        if refused := self.driver.refusal_in(command, result.stdout):
            raise TestbedError(refused)

    def restart(
        self, command: str, configure: Callable[[], None], limit: float, wait: Callable[[float], None] = time.sleep
    ) -> bool:
        """:meth:`reset` it by *command*, and *configure* it once it is there; return whether it was within *limit* s.

        Raises TestbedError if it takes no command.
        """
        self.reset(command)
        for _ in range(round(2 * limit)):
            wait(0.5)
            # until it is there, and takes its configuration
            with contextlib.suppress(TestbedError):
                try:
                    self.watch.read()
                except RouterRestarted:
                    configure()
                    self.watch.configured()
                    return True
        return False

    def restore(self) -> None:
        """Undo the configuration and log out, within RESTORE_LIMIT and twice 5 s for closing its link.

        Harmless when repeated; after an interrupt it goes on where it was. Raises TestbedError with the commands for
        what stays on the router.
        """
        failure = None
        try:
            # a simulated router ends with its process, and its changes with it
            if self.connected and (self.testbed.runs or not self.testbed.facts.simulated):
                if self._ssh is not None:
                    self._ssh.end_by(time.monotonic() + RESTORE_LIMIT)
                if kept := self.driver.restore():
                    log.warning("%s", kept)
                    self.afterwards.append(f"when the router was restored: {kept}")
        except TestbedError as error:
            # a kernel's restart has undone it already; what is not looked at now is in the journal
            failure = None if self.restarted and self.driver.description.is_posix else error
            restarted = "it had restarted, and " if failure is None else ""
            self.afterwards.append(f"when the router was restored: {restarted}{error}")
        if self._journal is not None:
            self._journal.close()
        self._watch = self._journal = None
        self._log_out()
        if failure is not None:
            raise failure

    def _log_out(self) -> None:
        ssh, self._ssh, self._shell = self._ssh, None, None
        if ssh is not None:
            ssh.close()


def _required(part: T | None) -> T:
    if part is None:
        raise TestbedError("no router is connected; call 'Start Testbed' first")
    return part


def _is_named(value: str, shown: str) -> bool:
    """Return whether the address *value*, or its part before a slash, is among those *shown*."""
    return re.search(rf"(?<![\d.]){re.escape(value.partition('/')[0])}(?![\d.])", shown) is not None


LARGEST_DIFFERENCE = 0.01
"""The largest by which two figures of one speed may differ, as a ratio."""


def check_line_rate(states: Sequence[LinkState], generator: GeneratorConnection) -> str:
    """Return of which links neither end shows the speed that the platform's file says, in words; "": of none.

    *states*: of the router's interfaces, in their order. Raises TestbedError where the slower end has another speed.
    Where one is faster a switch is between.
    """
    platform, unseen = generator.plan.platform, []
    ports = {port.index: port for port in generator.ports}
    ends = zip(states, map(ports.get, generator.testbed.facts.generator.ports), platform.ports.values(), strict=False)
    for state, port, said in ends:
        # a slower one was refused when it was connected, and TRex knows none above 200 Gbit/s
        own = max(port.speed_bps, said) if port is not None and port.speed_bps else 0.0
        if state.speed_bps is None and not own:
            unseen.append(f"{state.interface} ({si(said, 'bit/s')})")
        elif abs(min(state.speed_bps or said, own or math.inf) - said) > LARGEST_DIFFERENCE * said:
            shown = f"the router's {state.interface} runs at {si(state.speed_bps or said, 'bit/s')}"
            shown += f" ('{state.speed_from}')"
            shown += f"; the generator's port {port.index} runs at {port.speed_text}" if port is not None else ""
            raise TestbedError(
                f"{shown}; the platform '{platform.platform}' says {si(said, 'bit/s')}; fix 'ports' in its file or the"
                " cabling"
            )
    if not unseen:
        return ""
    return (
        f"'% line rate' is of what 'ports' of the platform '{platform.platform}' says: neither end of"
        f" {' and '.join(unseen)} shows the speed of its link"
    )


SAVED_FOR = 3600.0
"""Seconds for which a configuration that a run has saved is loaded again at the next start, without a question."""


def undo_leftover(journal: ChangeJournal, router: Router, asked: bool = False) -> str:
    """Undo what *journal* has of an earlier run on *router*; returns a sentence, "" if there is nothing.

    *asked*: a person asked for it; else a saved configuration that is older than :data:`SAVED_FOR` is not loaded,
    because others may have configured the router since, nor one that would go over what they certainly have.

    Raises TestbedError if something stays on the router, or it has another ``shell`` now.
    """
    leftover = journal.leftover
    if leftover is None:
        return ""
    before, now = leftover.occasion, journal.occasion
    age = now.since - before.since
    refusal = ""
    if before.kind != now.kind:
        refusal = (
            f", which was 'shell: {before.kind}' by its platform's file, and now is 'shell: {now.kind}'; run 'lineproof"
            f" restore' with a platform and '--software' of 'shell: {before.kind}'"
        )
    elif not asked and any(change.whole for change in leftover.changes) and not 0 <= age <= SAVED_FOR:
        refusal = (
            f"; that loads a configuration saved {age / 3600:.1f} h ago, over whatever was configured there since: look"
            " at it, then 'lineproof restore' loads it"
        )
    if refusal:
        raise TestbedError(
            f"an earlier run left {leftover.text} on the router at {before.router}{refusal}; or undo the changes by"
            f" hand and remove {journal.path}"
        )
    try:
        router.keep_journal(journal)
        kept = router.restore(asked)
    except TestbedError as error:
        raise TestbedError(
            f"an earlier run left changes on the router at {before.router} ({before}): {error}. They are tried"
            f" again at the next start; if you undid them by hand, remove {journal.path}"
        ) from None
    finally:
        router.keep_journal(MadeChanges())  # what stays is not the session's to undo
    name = "" if before.router == now.router else f" at {before.router}"
    undid = f"undid {'what was still there of ' * bool(kept)}{leftover.text}"
    return f"{undid}, left on the router{name} by an earlier run{f'; {kept}' if kept else ''}"
