"""The account with which the netns testbed's sshd lets in."""

from __future__ import annotations

import pwd
from pathlib import Path
from typing import NoReturn

import pytest

from lineproof.errors import TestbedError
from lineproof.testbed import sshd


def test_a_user_without_an_account_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> NoReturn:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(sshd, "find_program", lambda name: f"/usr/sbin/{name}")
    with pytest.raises(TestbedError, match=r"has no account on this machine, .* expected a line .* in /etc/passwd"):
        sshd.prepare(tmp_path / "sshd", "lr-none")
