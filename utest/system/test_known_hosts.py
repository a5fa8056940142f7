"""Lines of a ``known_hosts`` file about a host: every form of sshd(8) works, and no other line lets anybody in."""

from __future__ import annotations

import base64
import hmac
import re
from pathlib import Path
from typing import Any

import paramiko
import pytest

from lineproof.errors import TestbedError
from lineproof.system.login import Login, Secrets
from lineproof.system.ssh_keys import HostKeyCheck, read_known_hosts
from lineproof_bench.shells.ssh_library import asyncssh

KEY, OTHER = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
ECDSA = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
CLIENT: Any = None


def public(key: asyncssh.SSHKey) -> str:
    return key.export_public_key().decode().strip()


def _plain(value: object) -> str:
    """The name of a parameter: the same in every process, without the key, which is made anew in each."""
    text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
    return re.sub(r"[A-Za-z0-9+/=]{20,}", "KEY", text)[:60]


def hashed(name: str) -> str:
    salt = b"0123456789abcdefghij"
    digest = hmac.digest(salt, name.encode(), "sha1")
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def check(tmp_path: Path, text: str | bytes, host: str = "router", port: int = 22, key: asyncssh.SSHKey = KEY) -> None:
    """Check as a client does when *host* shows *key*."""
    path = tmp_path / "known_hosts"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    shown = paramiko.PKey.from_type_string(key.get_algorithm(), key.public_data)
    HostKeyCheck(Login(host, port, "u", None, path), f"the router at {host}:{port}").missing_host_key(CLIENT, "", shown)


@pytest.mark.parametrize(
    ("names", "host", "port"),
    [
        ("router", "router", 22),
        ("Router", "ROUTER", 22),
        ("other,router,192.0.2.1", "192.0.2.1", 22),
        ("[router]:2222", "router", 2222),
        ("[2001:db8::1]:2222", "2001:DB8::1", 2222),
        ("2001:db8::1", "2001:db8::1", 22),
        ("*.lab,192.0.2.?", "192.0.2.1", 22),
        ("[*.lab]:*", "a.lab", 830),
        (hashed("router"), "router", 22),
        (hashed("[router]:2222"), "router", 2222),
    ],
)
def test_every_form_of_a_host_name_is_found(tmp_path: Path, names: str, host: str, port: int) -> None:
    more = f"# a comment\n\n{names} {public(ECDSA)}\n\t{names}   {public(KEY)} a comment\r\n"
    check(tmp_path, more, host, port)
    check(tmp_path, f"@revoked * {public(OTHER)}\n@cert-authority * {public(OTHER)}\n" + more, host, port)


@pytest.mark.parametrize(
    ("names", "host", "port"),
    [
        ("router", "router", 2222),
        ("[router]:2222", "router", 22),
        ("[router]:2222", "router", 2223),
        ("*.lab,!b.lab", "b.lab", 22),
        ("r.uter", "router", 22),
        ("[abc]outer", "router", 22),
        ("outer", "router", 22),
        (hashed("router"), "router", 2222),
        (hashed("router"), "other", 22),
    ],
)
def test_a_host_with_no_line_of_its_own_is_unknown(tmp_path: Path, names: str, host: str, port: int) -> None:
    name = host if port == 22 else f"[{host}]:{port}"
    with pytest.raises(TestbedError) as caught:
        check(tmp_path, f"{names} {public(KEY)}", host, port)
    assert f"the host key of the router at {host}:{port} is not in '{tmp_path}/known_hosts'; " in str(caught.value)
    assert f"ssh-ed25519 {KEY.get_fingerprint()}" in str(caught.value)
    assert str(caught.value).endswith(f"add this line to the file: {name} {public(KEY)}")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"router {public(KEY)}\n@revoked router {public(KEY)}", "shows a host key that line 2 of '{}' revokes"),
        (f"@revoked * {public(KEY)}", "shows a host key that line 1 of '{}' revokes"),
        (f"@cert-authority * {public(OTHER)}", "line 1 trusts an authority for it, and certificates of hosts are not"),
        (f"\nrouter {public(OTHER)}", "another host key than '{}' holds in line 2"),
        (f"router {public(ECDSA)}\nrouter {public(OTHER)}", "another host key than '{}' holds in line 2"),
        (f"router {public(ECDSA)}", "the known one is ecdsa-sha2-nistp256 SHA256:"),
    ],
    ids=_plain,
)
def test_what_must_not_be_trusted_is_told_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(TestbedError) as caught:
        check(tmp_path, text)
    assert says.format(tmp_path / "known_hosts") in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        b"router",
        b"router ssh-ed25519",
        b"@trusted router " + public(KEY).encode(),
        b"router ssh-ed25519 not*base64",
        b"router ssh-rsa " + public(KEY).split()[1].encode(),
        b"|1|broken|" + b" " + public(KEY).encode(),
        b"\x00\xff\x1b[31m",
    ],
    ids=_plain,
)
def test_a_broken_line_is_of_no_host(tmp_path: Path, line: bytes) -> None:
    good = public(KEY).encode()
    check(tmp_path, line + b"\nrouter " + good + b"\n")
    with pytest.raises(TestbedError, match=r"the host key of the router at router:22 is not in"):
        check(tmp_path, line)


def test_a_folder_in_its_place_is_told(tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match=r"cannot be read \(Is a directory\); fix 'known_hosts' in the testbed file"):
        read_known_hosts(tmp_path, "router", 22)


def test_a_fingerprint_in_the_testbed_file_takes_the_place_of_known_hosts(tmp_path: Path) -> None:
    shown = paramiko.PKey.from_type_string(KEY.get_algorithm(), KEY.public_data)
    (tmp_path / "known_hosts").write_text("broken\n")  # and is not read
    other = "SHA256:" + 43 * "A"

    def of(*fingerprints: str) -> HostKeyCheck:
        return HostKeyCheck(
            Login("router", 22, "u", None, tmp_path / "known_hosts", host_keys=fingerprints), "the router at router:22"
        )

    for fingerprints in ((KEY.get_fingerprint(),), (other, KEY.get_fingerprint())):
        of(*fingerprints).missing_host_key(CLIENT, "", shown)
    with pytest.raises(TestbedError) as caught:
        of(other).missing_host_key(CLIENT, "", shown)
    assert f"shows another host key than 'host_key' of the testbed file says: {KEY.get_algorithm()}" in str(
        caught.value
    )
    assert KEY.get_fingerprint() in str(caught.value)


# -- logins as data: the way to a machine without the secrets, which no text of theirs shows


SECRET = "hunter2-and-more"
KEY_TEXT = "-----BEGIN OPENSSH PRIVATE KEY_TEXT-----\nb3BlbnNzaC1rZXktdjEAAAAA\nBG5vbmUAAAAEbm9uZQ==\n-----END-----\n"
GIVEN = Secrets({"JUMP_PASSWORD": SECRET, "ROUTER_KEY": KEY_TEXT})
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


def test_no_text_of_it_shows_a_secret() -> None:
    for text in (repr(ROUTER), str(ROUTER), repr(GIVEN), ROUTER.where):
        assert SECRET not in text and "b3Blbn" not in text
    assert ROUTER.where == "192.0.2.1:22 through jump.example:2222"


def test_an_echo_of_a_secret_is_masked_even_one_line_of_a_key() -> None:
    assert ROUTER.masked(f"Password: {SECRET}!") == "Password: ***!"
    assert ROUTER.masked("> BG5vbmUAAAAEbm9uZQ==\n") == "> ***\n"


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
