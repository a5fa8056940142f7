"""Keys of SSH: private ones of each common format, and lines of ``known_hosts`` in every form of sshd(8)."""

from __future__ import annotations

import base64
import hmac
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paramiko
import pytest

from lineproof.errors import TestbedError
from lineproof.system.login import Login, Secrets
from lineproof.system.ssh_keys import HostKeyCheck, private_key
from lineproof_bench.shells.server import asyncssh

# keys of the tests have few rounds, for speed
pytestmark = pytest.mark.filterwarnings("ignore:.*bcrypt.kdf")

PASSPHRASE, KEY_BODY = "correct horse ☂", "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"
KINDS = {
    "ed25519": asyncssh.generate_private_key("ssh-ed25519"),
    "ecdsa": asyncssh.generate_private_key("ecdsa-sha2-nistp384"),
    "rsa": asyncssh.generate_private_key("ssh-rsa", key_size=2048),
}
FORMATS = [
    (kind, form)
    for kind in KINDS
    for form in ("openssh", "pkcs8-pem", "pkcs1-pem")
    if (kind, form[:5]) != ("ed25519", "pkcs1")
]


def read(folder: Path, data: bytes, phrase: str | None = None, name: str = "key") -> paramiko.PKey | None:
    """Return the private key in the file *name* of *folder*, whose passphrase is *phrase* if it has one."""
    (folder / name).write_bytes(data)
    return load(key=folder / name, passphrase_from=None if phrase is None else "PHRASE", PHRASE=phrase or "")


def load(key: Path | None = None, passphrase_from: str | None = None, **secrets: str) -> paramiko.PKey | None:
    way = {"key": key} if key is not None else {"key_from": "ROUTER_KEY"}
    login = Login(address="router", user="u", passphrase_from=passphrase_from, **way)
    return private_key(login.with_secrets(Secrets(secrets)), "the router")


def exported(key: asyncssh.SSHKey, form: str = "openssh", phrase: str | None = None) -> bytes:
    options: dict[str, Any] = {"cipher_name": "aes256-cbc"} if form == "pkcs8-pem" else {}
    written: bytes = key.export_private_key(form, phrase, rounds=1 if form == "openssh" else 128, **options)
    return written


@pytest.fixture(autouse=True)
def _no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.mark.parametrize(("kind", "form"), FORMATS)
def test_a_key_is_read_with_and_without_a_passphrase(tmp_path: Path, kind: str, form: str) -> None:
    key = KINDS[kind]
    locked = exported(key, form, PASSPHRASE)
    for found in (read(tmp_path, exported(key, form)), read(tmp_path, locked, PASSPHRASE)):
        assert found is not None and found.asbytes() == key.public_data and found.can_sign()
    with pytest.raises(TestbedError, match=r"key' has a passphrase; expected its variable in 'passphrase_from'"):
        read(tmp_path, locked)
    with pytest.raises(TestbedError, match=r"the passphrase in 'PHRASE' for the key '.*key' is wrong") as caught:
        read(tmp_path, locked, "hunter2")
    assert "hunter2" not in str(caught.value) and caught.value.__suppress_context__


DAMAGED, STRANGE = "is damaged, or not a private key", "is of a kind or encrypted in a way that is not supported"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        *((data, DAMAGED) for data in (b"", b"hunter2", KINDS["rsa"].export_private_key("openssh")[:-90])),
        (KINDS["ecdsa"].export_public_key(), "is a public one; expected its private half in ssh-agent"),
        *(
            (asyncssh.generate_private_key(kind).export_private_key("pkcs8-pem"), STRANGE)
            for kind in ("ssh-dss", "ssh-ed448")
        ),
    ],
)
def test_what_is_no_key_is_told(tmp_path: Path, data: bytes, says: str) -> None:
    with pytest.raises(TestbedError, match=f"the key '{tmp_path / 'key'}' {says}"):
        read(tmp_path, data)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "Is a directory: '{}'"),
        (KEY_BODY, "No such file or directory: in '{}'"),
        (f"{KEY_BODY}/x", "No such file or directory: in '{}'"),
        (100 * KEY_BODY, "File name too long: in '{}'"),
    ],
)
def test_a_key_that_cannot_be_read_is_told_and_one_in_the_place_of_its_path_not_shown(
    tmp_path: Path, path: str, says: str
) -> None:
    with pytest.raises(TestbedError) as caught:
        load(key=tmp_path / path)
    reason = says.format(tmp_path)
    assert str(caught.value) == f"the key for the router cannot be read ({reason}); fix 'key' in the testbed file"
    assert KEY_BODY not in str(caught.value)


@pytest.fixture
def agent(tmp_path: Path, _no_agent: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not shutil.which("ssh-agent"):
        pytest.skip("needs ssh-agent (openssh-client)")
    socket = str(tmp_path / "agent")
    process = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    monkeypatch.setenv("SSH_AUTH_SOCK", socket)
    yield
    process.terminate()
    process.communicate()


@pytest.mark.slow
def test_the_agent_unlocks_the_named_key_and_no_other(tmp_path: Path, agent: None) -> None:
    def add(key: asyncssh.SSHKey) -> None:
        (tmp_path / "added").write_bytes(exported(key))
        (tmp_path / "added").chmod(0o600)
        subprocess.run(["ssh-add", "-q", str(tmp_path / "added")], check=True, capture_output=True)

    locked, public = exported(KINDS["rsa"], phrase=PASSPHRASE), KINDS["rsa"].export_public_key()
    add(KINDS["ed25519"])
    for _ in range(2):
        with pytest.raises(TestbedError, match=r"or the key in ssh-agent, with '.*key\.pub' here, which holds no such"):
            read(tmp_path, locked)
        (tmp_path / "key.pub").write_bytes(public)
    add(KINDS["rsa"])
    found = read(tmp_path, locked)
    assert found is not None and found.asbytes() == KINDS["rsa"].public_data
    signature = paramiko.Message(bytes(found.sign_ssh_data(b"data", "rsa-sha2-256")))
    assert paramiko.RSAKey(data=found.asbytes()).verify_ssh_sig(b"data", signature)
    half = read(tmp_path, public, name="half.pub")
    assert half is not None and half.asbytes() == KINDS["rsa"].public_data
    with pytest.raises(TestbedError, match=r"half.pub' is a public one; .* which holds no such key"):
        read(tmp_path, KINDS["ecdsa"].export_public_key(), name="half.pub")


def test_a_key_may_be_the_content_of_a_secret() -> None:
    plain, locked = exported(KINDS["ecdsa"]).decode(), exported(KINDS["ecdsa"], phrase=PASSPHRASE).decode()
    # a person pastes it, or a store of secrets hands it on, without the last newline
    for text, phrase in ((plain, None), (plain.strip(), None), (f"\n{locked}\n", "PHRASE")):
        found = load(passphrase_from=phrase, ROUTER_KEY=text, PHRASE=PASSPHRASE)
        assert found is not None and found.asbytes() == KINDS["ecdsa"].public_data
    with pytest.raises(TestbedError, match=r"the key 'ROUTER_KEY' has a passphrase; expected its variable in"):
        load(ROUTER_KEY=locked)
    with pytest.raises(TestbedError, match=r"the key 'ROUTER_KEY' is damaged, or not a private key") as caught:
        load(ROUTER_KEY="hunter2")
    assert "hunter2" not in str(caught.value)


KEY, OTHER = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
ECDSA = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
CLIENT: Any = None


def public(key: asyncssh.SSHKey) -> str:
    return key.export_public_key().decode().strip()


def _plain(value: object) -> str:
    """The name of a parameter: the same in every process, without the key, which is made anew in each."""
    return re.sub(r"[A-Za-z0-9+/=]{20,}", "KEY", str(value))[:60]


def hashed(name: str) -> str:
    salt = b"0123456789abcdefghij"
    digest = hmac.digest(salt, name.encode(), "sha1")
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def check(folder: Path, text: str, host: str = "router", port: int = 22, **more: Any) -> None:
    """Check as a client does when *host* shows *KEY*."""
    path = folder / "known_hosts"
    path.write_text(text, errors="surrogateescape")
    shown = paramiko.PKey.from_type_string(KEY.get_algorithm(), KEY.public_data)
    keys = more or {"known_hosts": path}
    login = Login(address=host, port=port, user="u", key=Path("key"), **keys)
    HostKeyCheck(login, f"the router at {host}:{port}").missing_host_key(CLIENT, "", shown)


@pytest.mark.parametrize(
    ("names", "host", "port"),
    [
        ("Router", "ROUTER", 22),
        ("other,router,192.0.2.1", "192.0.2.1", 22),
        ("[router]:2222", "router", 2222),
        ("[2001:db8::1]:2222", "2001:DB8::1", 2222),
        (hashed("router"), "router", 22),
        (hashed("[router]:2222"), "router", 2222),
    ],
)
def test_every_form_of_a_host_name_is_found_among_other_lines(tmp_path: Path, names: str, host: str, port: int) -> None:
    for others in ("", f"@revoked * {public(OTHER)}\n@cert-authority * {public(OTHER)}\n", "\n".join(BROKEN)):
        lines = f"{others}\n# a comment\n{names} {public(ECDSA)}\n\t{names}   {public(KEY)} a comment\r\n"
        check(tmp_path, lines, host, port)


BROKEN = (
    "router",
    "router ssh-ed25519",
    f"@trusted router {public(KEY)}",
    "router ssh-ed25519 not*base64",
    f"router ssh-rsa {public(KEY).split()[1]}",
    f"|1|broken| {public(KEY)}",
    "\udcff\x1b[31m",
)


@pytest.mark.parametrize(
    ("line", "host", "port"),
    [
        (f"router {public(KEY)}", "router", 2222),
        (f"[router]:2222 {public(KEY)}", "router", 2223),
        (f"* {public(KEY)}", "router", 22),
        (f"@cert-authority router {public(KEY)}", "router", 22),
        (f"{hashed('router')} {public(KEY)}", "router", 2222),
        *((line, "router", 22) for line in BROKEN),
    ],
    ids=_plain,
)
def test_a_host_with_no_line_of_its_own_is_unknown(tmp_path: Path, line: str, host: str, port: int) -> None:
    name = host if port == 22 else f"[{host}]:{port}"
    with pytest.raises(TestbedError) as caught:
        check(tmp_path, line, host, port)
    assert f"the host key of the router at {host}:{port} is not in '{tmp_path}/known_hosts': " in str(caught.value)
    assert f"ssh-ed25519 {KEY.get_fingerprint()}" in str(caught.value)
    assert str(caught.value).endswith(f"add this line to the file: {name} {public(KEY)}")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"router {public(KEY)}\n@revoked router {public(KEY)}", "shows a host key that line 2 of '{}' revokes"),
        (f"@revoked other,* {public(KEY)} by me", "shows a host key that line 1 of '{}' revokes"),
        (f"\nrouter {public(OTHER)}", "another host key than '{}' holds in line 2"),
        (f"router {public(ECDSA)}\nrouter {public(OTHER)}", "another host key than '{}' holds in line 2"),
        (f"router {public(ECDSA)}", "in line 1, ecdsa-sha2-nistp256 SHA256:"),
    ],
    ids=_plain,
)
def test_what_must_not_be_trusted_is_told_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(TestbedError) as caught:
        check(tmp_path, text)
    assert says.format(tmp_path / "known_hosts") in str(caught.value)


def test_a_fingerprint_in_the_testbed_file_takes_the_place_of_known_hosts(tmp_path: Path) -> None:
    other = "SHA256:" + 43 * "A"
    for fingerprints in ((KEY.get_fingerprint(),), (other, KEY.get_fingerprint())):
        check(tmp_path, "broken\n", host_key=fingerprints)
    with pytest.raises(TestbedError, match=r"another host key than 'host_key' of the testbed file says: ssh-ed25519"):
        check(tmp_path, f"router {public(KEY)}", host_key=(other,))


# -- logins as data: the way to a machine without the secrets, which no text of theirs shows


SECRET = "hunter2-and-more"
KEY_TEXT = "-----BEGIN OPENSSH PRIVATE KEY_TEXT-----\nb3BlbnNzaC1rZXktdjEAAAAA\nBG5vbmUAAAAEbm9uZQ==\n-----END-----\n"
GIVEN = Secrets({"JUMP_PASSWORD": SECRET, "ROUTER_KEY": KEY_TEXT})
JUMP = Login(address="jump.example", port=2222, user="hop", password_from="JUMP_PASSWORD")
ROUTER = Login(address="192.0.2.1", user="admin", key_from="ROUTER_KEY", jump=JUMP).with_secrets(GIVEN)


def test_no_text_of_it_shows_a_secret_and_an_echo_is_masked_even_one_line_of_a_key() -> None:
    for text in (repr(ROUTER), str(ROUTER), repr(GIVEN), ROUTER.where):
        assert SECRET not in text and "b3Blbn" not in text
    assert ROUTER.where == "192.0.2.1:22 through jump.example:2222"
    assert ROUTER.masked(f"Password: {SECRET}!") == "Password: ***!"
    assert ROUTER.masked("> BG5vbmUAAAAEbm9uZQ==\n") == "> ***\n"


def test_a_secret_that_nothing_has_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROUTER_PASSWORD", raising=False)
    asked = ("ROUTER_PASSWORD", "password for the router")
    with pytest.raises(TestbedError, match=r"\$\{ROUTER_PASSWORD\} is a variable that Robot writes into its logs"):
        Secrets(plain=frozenset({"ROUTER_PASSWORD"})).read(*asked)
    for value, state in ((None, "not set"), ("", "empty")):
        if value is not None:
            monkeypatch.setenv("ROUTER_PASSWORD", value)
        with pytest.raises(TestbedError, match=f"environment variable is {state}; set it: read -rs ROUTER_PASSWORD"):
            Secrets().read(*asked)
    monkeypatch.setenv("ROUTER_PASSWORD", SECRET)
    assert Secrets().read(*asked) == SECRET
    assert Secrets({"ROUTER_PASSWORD": "given"}).read(*asked) == "given"
