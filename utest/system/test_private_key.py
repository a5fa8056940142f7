"""Private keys of each common format: with the right passphrase, a wrong one, none, and in ssh-agent."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import paramiko
import pytest

from lineproof.errors import TestbedError
from lineproof.system.ssh_keys import load_key, parse_key
from lineproof_bench.shells.ssh_library import asyncssh

# keys of the tests have few rounds, for speed
pytestmark = pytest.mark.filterwarnings("ignore:.*bcrypt.kdf")

PASSPHRASE, SECRET = "correct horse ☂", "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"
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


def never() -> str:
    raise AssertionError("nobody needs a passphrase")


def given_phrase(text: str) -> Callable[[], str]:
    return lambda: text


def write(path: Path, key: asyncssh.SSHKey, form: str, passphrase: str | None) -> Path:
    options: dict[str, Any] = {"cipher_name": "aes256-cbc"} if form == "pkcs8-pem" else {}
    path.write_bytes(key.export_private_key(form, passphrase, rounds=1 if form == "openssh" else 128, **options))
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(("kind", "form"), FORMATS)
def test_a_key_is_read_with_and_without_a_passphrase(tmp_path: Path, kind: str, form: str) -> None:
    key = KINDS[kind]
    plain = write(tmp_path / "plain", key, form, None)
    locked = write(tmp_path / "locked", key, form, PASSPHRASE)
    for found in (load_key(plain, None), load_key(plain, never), load_key(locked, given_phrase(PASSPHRASE))):
        assert found.asbytes() == key.public_data and found.can_sign()


@pytest.mark.parametrize(("kind", "form"), FORMATS)
def test_a_locked_key_is_named_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, form: str) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    path = write(tmp_path / "locked", KINDS[kind], form, PASSPHRASE)
    with pytest.raises(TestbedError, match=r"locked' has a passphrase; expected 'passphrase_from' .*no ssh-agent\)"):
        load_key(path, None)
    for wrong in ("", "x", PASSPHRASE + " ", "hunter2"):
        with pytest.raises(TestbedError, match=r"the passphrase for the key '.*locked' is wrong") as caught:
            load_key(path, given_phrase(wrong))
        assert "hunter2" not in str(caught.value) and caught.value.__suppress_context__


DAMAGED, STRANGE = "is damaged, or not a private key", "is of a kind or encrypted in a way that is not supported"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        *((data, DAMAGED) for data in (b"", b"hunter2", KINDS["rsa"].export_private_key("openssh")[:-90])),
        (KINDS["ecdsa"].export_public_key(), "is a public one; expected the private half in ssh-agent"),
        *(
            (asyncssh.generate_private_key(kind).export_private_key("pkcs8-pem"), STRANGE)
            for kind in ("ssh-dss", "ssh-ed448")
        ),
    ],
)
def test_what_is_no_key_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, says: str) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / "key").write_bytes(data)
    with pytest.raises(TestbedError, match=says) as caught:
        load_key(tmp_path / "key", None)
    assert f"the key '{tmp_path / 'key'}'" in str(caught.value)


def test_a_key_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for name, reason in (("none", "No such file or directory"), ("", "Is a directory")):
        with pytest.raises(TestbedError, match=f"cannot be read .{reason}.; fix 'key' in the testbed file"):
            load_key(tmp_path / name, None)


def test_a_key_in_the_place_of_its_path_is_not_shown() -> None:
    with pytest.raises(TestbedError, match="the key cannot be read") as caught:
        load_key(Path(SECRET), None)
    assert SECRET not in str(caught.value)


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
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
        path = write(tmp_path / "added", key, "openssh", None)
        path.chmod(0o600)
        subprocess.run(["ssh-add", "-q", str(path)], check=True, capture_output=True)

    path = write(tmp_path / "locked", KINDS["rsa"], "openssh", PASSPHRASE)
    add(KINDS["ed25519"])
    with pytest.raises(TestbedError, match=r"without its public half: ssh-keygen -yf '.*' > '.*locked\.pub'"):
        load_key(path, None)
    (tmp_path / "locked.pub").write_bytes(KINDS["rsa"].export_public_key())
    with pytest.raises(TestbedError, match=r"has a passphrase; .*does not hold it: ssh-add '.*locked'"):
        load_key(path, None)
    add(KINDS["rsa"])
    found = load_key(path, None)
    assert found.asbytes() == KINDS["rsa"].public_data
    signature = paramiko.Message(bytes(found.sign_ssh_data(b"data", "rsa-sha2-256")))
    assert paramiko.RSAKey(data=found.asbytes()).verify_ssh_sig(b"data", signature)
    (tmp_path / "half.pub").write_bytes(KINDS["rsa"].export_public_key())
    assert load_key(tmp_path / "half.pub", None).asbytes() == KINDS["rsa"].public_data
    (tmp_path / "half.pub").write_bytes(KINDS["ecdsa"].export_public_key())
    with pytest.raises(TestbedError, match=r"half.pub' is a public one; .*does not hold it: ssh-add with its private"):
        load_key(tmp_path / "half.pub", None)


def test_a_key_may_be_the_content_of_a_secret() -> None:
    key = KINDS["ecdsa"]
    plain = key.export_private_key("openssh").decode()
    locked = key.export_private_key("openssh", PASSPHRASE, rounds=1).decode()
    # a person pastes it, or a store of secrets hands it on, without the last newline
    for text, asked in ((plain, None), (plain.strip(), never), (f"\n{locked}\n", given_phrase(PASSPHRASE))):
        assert parse_key(text, "ROUTER_KEY", asked).asbytes() == key.public_data
    with pytest.raises(TestbedError, match=r"the key 'ROUTER_KEY' has a passphrase; expected 'passphrase_from'"):
        parse_key(locked, "ROUTER_KEY", None)
    with pytest.raises(TestbedError, match=r"the key 'ROUTER_KEY' is damaged, or not a private key") as caught:
        parse_key("hunter2", "ROUTER_KEY", None)
    assert "hunter2" not in str(caught.value)
