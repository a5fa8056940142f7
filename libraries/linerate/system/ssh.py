"""SSH logins with a key or a password, to machines with a known host key."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import paramiko

from ..errors import TestbedError

CONNECT_LIMIT = 10.0
"""Seconds for each step of a login."""


@dataclass(frozen=True, slots=True)
class Login:
    """``host:port`` as ``user``, by the key ``key_path`` or the password in the environment variable ``password_from``.

    The machine's host key must be in the file ``known_hosts_path``.
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

    def require_known_host_key(self, client: paramiko.SSHClient, who: str) -> None:
        """Make *client* accept only known host keys. Raises TestbedError where the known_hosts file is missing."""
        if not self.known_hosts_path.is_file():
            raise TestbedError(
                f"the known_hosts file '{self.known_hosts_path}' for {who} is missing; make it with:"
                f" ssh-keyscan -p {self.port} {self.host}"
            )
        client.load_host_keys(str(self.known_hosts_path))
        client.set_missing_host_key_policy(paramiko.RejectPolicy())


def connect(login: Login, who: str) -> paramiko.SSHClient:
    """A logged-in connection to *who*. Raises TestbedError, which never contains the password."""
    client = paramiko.SSHClient()
    login.require_known_host_key(client, who)
    secret = read_password(login, who) if login.password_from else None
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
        raise login_error(error, login, who) from None  # its cause may contain the password
    return client


def read_password(login: Login, who: str) -> str:
    """The password for *login* from the environment. Raises TestbedError where it is not set."""
    secret = os.environ.get(login.password_from or "")
    if not secret:
        raise TestbedError(
            f"the testbed takes the password for {who} from the environment variable '{login.password_from}', which is"
            " not set"
        )
    return secret


def login_error(error: Exception, login: Login, who: str) -> TestbedError:
    """Why there is no connection to *who*, and what to do about it."""
    known, machine, text = login.known_hosts_path, f"{who} at {login.where}", error_text(error).rstrip(".")
    if isinstance(error, paramiko.BadHostKeyException):
        return TestbedError(
            f"{machine} shows another host key than '{known}' holds (got {error.key.get_name()}"
            f" {error.key.fingerprint}); if the machine was really exchanged, remove the old line and add the new key"
        )
    if "not found in known_hosts" in text:
        return TestbedError(
            f"the host key of {machine} is not in '{known}'; compare its fingerprint at the console and add it, for"
            f" example with: ssh-keyscan -p {login.port} {login.host}"
        )
    if isinstance(error, paramiko.AuthenticationException) or "Login with public key failed" in text:
        if login.key_path:
            credential = f"the key '{login.key_path}'; put the key's public half into its authorized_keys, or correct"
        else:
            credential = f"the password in '{login.password_from}'; fix that variable, or"
        keys = "'user' and 'key' in the testbed file"
        return TestbedError(f"{machine} refuses the login of '{login.user}' with {credential} {keys}")
    if "key file" in text.lower():
        return TestbedError(f"{text}; fix 'key' in the testbed file")
    return TestbedError(f"no SSH login to {machine}: {text}; check 'address' and 'port' in the testbed file")


def error_text(error: Exception) -> str:
    """The text of *error*, without paramiko's ``[Errno None]``."""
    inner = error.errors.values() if isinstance(error, paramiko.ssh_exception.NoValidConnectionsError) else ()
    causes = {str(getattr(each, "strerror", None) or each) for each in inner}
    return ", ".join(sorted(causes)) or str(error).removeprefix("[Errno None] ") or type(error).__name__
