"""What an earlier run has left on a router of hardware: found in its journal, and undone before all else."""

from __future__ import annotations

from ..errors import TestbedError
from ..routers.base import Shell
from ..routers.change_journal import ChangeJournal, Leftover, Occasion
from ..routers.changing_commands import ChangingCommands
from ..routers.shell_commands import EXCHANGE_LIMIT

SAVED_FOR = 3600.0
"""Seconds for which a configuration that a run has saved is loaded again at the next start, without a question."""


def leftover_text(found: Leftover) -> str:
    """Return what is on the router, and the commands that undo it, in their order. *found* has changes."""
    undos = "; ".join(f"'{change.undo_text}'" for change in reversed(found.changes))
    count = len(found.changes)
    return f"{count} change{'s' if count > 1 else ''} of {found.occasion} (undone by {undos})"


def undo_leftover(
    journal: ChangeJournal,
    shell: Shell,
    sudo: bool,
    now: Occasion,
    limit: float = EXCHANGE_LIMIT,
    asked: bool = False,
) -> str:
    """Undo what *journal* has of an earlier run through *shell*; returns a sentence, "" if there is nothing.

    *limit*: s that a command may take. *asked*: a person asked for it; else a saved configuration that is older than
    :data:`SAVED_FOR` is not loaded, because others may have configured the router since, nor one that would go over
    what they certainly have.

    Nothing is run where the router has certainly restarted since, nor where that cannot be told, unless *asked*.
    Raises TestbedError if something stays on the router, or it is not the one that was changed by its host key or
    ``shell``.
    """
    found, before = journal.leftover, journal.occasion
    if not found.changes or before is None:
        return ""
    text = leftover_text(found)
    if before.host_key != now.host_key:
        raise TestbedError(
            f"an earlier run left {text} on the router at {before.router} with the host key {before.host_key}, and the"
            f" one there now has {now.host_key}; if it is the same router, undo them by hand; then remove {found.path}"
        )
    restarted = before.restarted_since(now)
    if restarted:
        journal.forget()
        return f"the router has restarted since, and with that lost {text}, left by an earlier run"
    if before.kind != now.kind:
        raise TestbedError(
            f"an earlier run left {text} on the router at {before.router}, which was 'shell:"
            f" {before.kind}' by its platform's file, and now is 'shell: {now.kind}'; run 'lineproof restore' with a"
            f" platform and '--software' of 'shell: {before.kind}'; or undo them by hand and remove {found.path}"
        )
    if restarted is None and not asked:
        raise TestbedError(
            f"an earlier run left {text} on the router at {before.router}; it cannot be told whether the router has"
            " restarted since, and with that lost them: its uptime and the clock of this machine, which may have"
            " restarted too, do not agree; look at it, then 'lineproof restore' undoes them; or remove"
            f" {found.path} if they are gone"
        )
    age = now.since - before.since
    if not asked and any(change.whole for change in found.changes) and not 0 <= age <= SAVED_FOR:
        raise TestbedError(
            f"an earlier run left {text} on the router at {before.router}; that loads a configuration saved"
            f" {age / 3600:.1f} h ago, over whatever was configured there since: look at it, then 'lineproof restore'"
            f" loads it; or undo the changes by hand and remove {found.path}"
        )
    commands = ChangingCommands(shell, limit, sudo)
    commands.keep_journal(journal)
    try:
        kept = commands.restore(over=asked)
    except TestbedError as error:
        raise TestbedError(
            f"an earlier run left changes on the router at {before.router} ({before}): {error}. They are tried"
            f" again at the next start; if you undid them by hand, remove {found.path}"
        ) from None
    name = "" if before.router == now.router else f" at {before.router}"
    return f"undid {text}, left on the router{name} by an earlier run{f'; {kept}' if kept else ''}"
