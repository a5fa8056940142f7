"""Commands of a testbed's file on this machine: their limits, and their secrets."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.system import local_command
from lineproof.system.local_command import run_here
from lineproof.system.login import Secrets

pytestmark = pytest.mark.slow

SECRETS = Secrets({"PDU_COMMUNITY": "c0mmunity"})
NAMES = ("PDU_COMMUNITY",)


def test_a_command_gets_the_secrets_that_it_names_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_PASSWORD", "hunter22")
    command = 'test "$PDU_COMMUNITY" = c0mmunity && echo "${OTHER_PASSWORD-unset}"; pwd'
    assert run_here(command, NAMES, SECRETS, "the meter") == "unset\n/\n"


def test_a_secret_that_a_command_prints_is_masked() -> None:
    assert run_here('echo "a $PDU_COMMUNITY"', NAMES, SECRETS, "the meter") == "a ***\n"
    with pytest.raises(TestbedError, match=r"^the meter: its command failed with status 3: no \*\*\* here$"):
        run_here('echo "no $PDU_COMMUNITY here" >&2; exit 3', NAMES, SECRETS, "the meter")


def test_a_secret_that_nothing_has_is_named() -> None:
    with pytest.raises(TestbedError, match="the secret for the meter from the environment variable 'PDU_COMMUNITY'"):
        run_here("true", NAMES, Secrets(), "the meter")


@pytest.mark.parametrize("command", ["sleep 60", "sleep 60 & wait", "sleep 60 >&- 2>&-", "yes"])
def test_a_command_without_an_end_is_ended_with_all_that_it_started(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(local_command, "LIMIT", 0.3)
    began = time.monotonic()
    with pytest.raises(TestbedError, match=r"its command (did not end within 0\.3 s|prints more than 64 KiB)"):
        run_here(f"(sleep 2; touch {tmp_path}/late) >/dev/null 2>&1 & {command}", (), SECRETS, "the meter")
    assert time.monotonic() - began < 2
    time.sleep(2.2)
    assert not (tmp_path / "late").exists()
