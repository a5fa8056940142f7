"""What ``lineproof doctor`` says of a machine's facts: a line that a person can read; all of them in the details."""

from __future__ import annotations

from lineproof.commands.host_checks import facts_check
from lineproof.counts.router_facts import RouterFacts


def test_the_line_has_the_first_facts_and_the_first_commands_without_an_answer() -> None:
    other = {f"fact {number}": "x" * 30 for number in range(40)}
    facts = RouterFacts(os="Debian 12", other=other, unread={f"show thing {n}": "not found" for n in range(27)})
    check = facts_check("router facts", facts)
    assert len(str(check)) < 400
    assert check.finding.startswith("operating system: Debian 12; fact 0: xxx")
    assert check.finding.endswith(
        " in --json; 27 commands gave no answer ('show thing 0', 'show thing 1', 'show thing 2' and others), which no"
        " verdict needs"
    )
    lines = check.details.splitlines()
    assert "fact 39: " + "x" * 30 in lines and "no answer to 'show thing 26': not found" in lines


def test_few_facts_are_all_there() -> None:
    assert facts_check("router facts", RouterFacts(os="Debian 12")).finding == "operating system: Debian 12"
    assert facts_check("router facts", RouterFacts()).finding == "none"
    long = facts_check("router facts", RouterFacts(os="x" * 500))
    assert long.finding == "1 fact in --json" and "x" * 500 in long.details
