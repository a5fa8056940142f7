"""Logins as data: the way to a machine without the secrets, which no text of theirs shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from lineproof.errors import TestbedError
from lineproof.system.login import Login, Secrets

SECRET = "hunter2-and-more"
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nBG5vbmUAAAAEbm9uZQ==\n-----END-----\n"
GIVEN = Secrets({"JUMP_PASSWORD": SECRET, "ROUTER_KEY": KEY})
JUMP = Login("jump.example", 2222, "hop", None, Path("known"), password_from="JUMP_PASSWORD", secrets=GIVEN)
ROUTER = Login(
    "192.0.2.1",
    22,
    "admin",
    None,
    Path("known"),
    key_from="ROUTER_KEY",
    host_keys=("SHA256:" + 43 * "A",),
    jump=JUMP,
    secrets=GIVEN,
)


def test_a_login_goes_through_json_without_its_secrets() -> None:
    logins = TypeAdapter(Login)
    text = logins.dump_json(ROUTER).decode()
    assert SECRET not in text and "b3Blbn" not in text
    made = logins.validate_json(text)
    assert logins.dump_json(made).decode() == text and made.jump is not None and made.jump.user == "hop"
    for path in (None, Path("key")):
        login = Login("h", 1, "u", path, Path("known"))
        assert logins.validate_json(logins.dump_json(login)) == login


def test_no_text_of_it_shows_a_secret() -> None:
    for text in (repr(ROUTER), str(ROUTER), repr(GIVEN), ROUTER.where):
        assert SECRET not in text and "b3Blbn" not in text
    assert ROUTER.where == "192.0.2.1:22 through jump.example:2222"


def test_an_echo_of_a_secret_is_masked_even_one_line_of_a_key() -> None:
    assert ROUTER.masked(f"Password: {SECRET}!") == "Password: ***!"
    assert ROUTER.masked("> BG5vbmUAAAAEbm9uZQ==\n") == "> ***\n"


def test_a_process_gets_what_it_needs_to_log_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/agent")
    assert ROUTER.environment() == {"JUMP_PASSWORD": SECRET, "ROUTER_KEY": KEY, "SSH_AUTH_SOCK": "/agent"}


def test_a_secret_that_nothing_has_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROUTER_PASSWORD", raising=False)
    asked = ("ROUTER_PASSWORD", "password", "the router")
    with pytest.raises(TestbedError, match="'ROUTER_PASSWORD', which is not set; set it: read -rs ROUTER_PASSWORD"):
        Secrets().read(*asked)
    with pytest.raises(TestbedError, match=r"\$\{ROUTER_PASSWORD\} is a variable that Robot writes into its logs"):
        Secrets(plain=frozenset({"ROUTER_PASSWORD"})).read(*asked)
    monkeypatch.setenv("ROUTER_PASSWORD", SECRET)
    assert Secrets().read(*asked) == SECRET
    assert Secrets({"ROUTER_PASSWORD": "given"}).read(*asked) == "given"
