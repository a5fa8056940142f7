"""One process serves generator and router: who asks the router meanwhile changes no count."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest

from lineproof.core.trial import Load
from lineproof.routers.ssh_shell import SshShell
from support.simulated_session import opened

SENTENCE = "64b bidirectional ≥ 78% line rate in total"


@pytest.mark.slow
def test_a_login_and_twenty_commands_during_a_trial_change_no_count(tmp_path: Path) -> None:
    asked: list[str] = []
    with opened(tmp_path, clock_speed=50.0) as session:
        requirement = session.plan.requirement(SENTENCE)
        session.traffic.put_for(requirement)

        def ask() -> None:
            with closing(SshShell(session.testbed.facts.router)) as shell:
                shell.open()
                asked.extend(shell("vppctl show runtime", 10.0).stdout for _ in range(20))

        def counts() -> list[tuple[int, int]]:
            outcome = session.traffic.measure(Load(5e6), 60.0)
            return [(row.offered, row.forwarded) for row in outcome.directions]

        alone = counts()
        asking = threading.Thread(target=ask)
        asking.start()
        assert counts() == alone
        asking.join()
    assert len(asked) == 20 and len(set(asked)) > 1, "it was asked while frames were counted"
