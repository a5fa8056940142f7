"""Logging in to a machine over SSH, its host key checked: with a testbed file's key or password."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import paramiko

from ..errors import TestbedError

CONNECT_LIMIT = 10.0
"""Seconds for each step of it."""


@dataclass(frozen=True, slots=True)
class Login:
    """``host:port`` as ``user``, with the key at ``key_path`` or the password in the variable ``password_from``.

    The machine must show a key that the file ``known_hosts_path`` holds for it.
    """

    host: str
    port: int
    user: str
    key_path: Path | None
    known_hosts_path: Path
    password_from: str | None = None

    @property
    def where(self) -> str:
        """``host:port``, for messages."""
        return f"{self.host}:{self.port}"

    def check_host_key(self, client: paramiko.SSHClient, who: str) -> None:
        """Let *client* accept no host key but those that are known. Raises TestbedError where none are."""
        if not self.known_hosts_path.is_file():
            raise TestbedError(
                f"the known_hosts file '{self.known_hosts_path}' for {who} is missing; make it with:"
                f" ssh-keyscan -p {self.port} {self.host}"
            )
        client.load_host_keys(str(self.known_hosts_path))
        client.set_missing_host_key_policy(paramiko.RejectPolicy())


def connect(login: Login, who: str) -> paramiko.SSHClient:
    """A connection to *who* that is logged in. Raises TestbedError, which never holds the password."""
    client = paramiko.SSHClient()
    login.check_host_key(client, who)
    secret = password(login, who) if login.password_from else None
    try:
        client.connect(
            login.host,
            login.port,
            login.user,
            password=secret,
            key_filename=str(login.key_path) if login.key_path else None,
            timeout=CONNECT_LIMIT,
            banner_timeout=CONNECT_LIMIT,
            auth_timeout=CONNECT_LIMIT,
            allow_agent=False,
            look_for_keys=False,
        )
    except Exception as error:
        client.close()
        raise refusal(error, login, who) from None  # what caused it may hold the password
    return client


def password(login: Login, who: str) -> str:
    """The password that the environment holds for *login*. Raises TestbedError where it holds none."""
    secret = os.environ.get(login.password_from or "")
    if not secret:
        raise TestbedError(
            f"the testbed takes the password for {who} from the environment variable '{login.password_from}', which is"
            " not set"
        )
    return secret


def refusal(error: Exception, login: Login, who: str) -> TestbedError:
    """Why there is no connection to *who*, and what to do about it."""
    known, there, text = login.known_hosts_path, f"{who} at {login.where}", said(error).rstrip(".")
    if isinstance(error, paramiko.BadHostKeyException):
        return TestbedError(
            f"{there} shows another host key than '{known}' holds (got {error.key.get_name()} {error.key.fingerprint});"
            " if the machine was really exchanged, remove the old line and add the new key"
        )
    if "not found in known_hosts" in text:
        return TestbedError(
            f"the host key of {there} is not in '{known}'; compare its fingerprint at the console and add it, for"
            f" example with: ssh-keyscan -p {login.port} {login.host}"
        )
    if isinstance(error, paramiko.AuthenticationException) or "Login with public key failed" in text:
        if login.key_path:
            means = f"the key '{login.key_path}'; put the key's public half into its authorized_keys, or correct"
        else:
            means = f"the password in '{login.password_from}'; fix that variable, or"
        keys = "'user' and 'key' in the testbed file"
        return TestbedError(f"{there} refuses the login of '{login.user}' with {means} {keys}")
    if "key file" in text.lower():
        return TestbedError(f"{text}; fix 'key' in the testbed file")
    return TestbedError(f"no SSH login to {there}: {text}; check 'address' and 'port' in the testbed file")


def said(error: Exception) -> str:
    """What *error* says, without the number that paramiko does not know (``[Errno None]``)."""
    inner = error.errors.values() if isinstance(error, paramiko.ssh_exception.NoValidConnectionsError) else ()
    causes = {str(getattr(each, "strerror", None) or each) for each in inner}
    return ", ".join(sorted(causes)) or str(error).removeprefix("[Errno None] ") or type(error).__name__
