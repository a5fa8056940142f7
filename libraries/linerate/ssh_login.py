"""Logging in to the TRex server's host over SSH, its host key checked: with a testbed file's key or password."""

from __future__ import annotations

import os

import paramiko

from .errors import BenchError
from .login import Login

CONNECT_LIMIT = 10.0
"""Seconds for each step of it."""


def connect(login: Login) -> paramiko.SSHClient:
    """A connection that is logged in. Raises BenchError, which never holds the password."""
    known = login.known_hosts_path
    if not known.is_file():
        raise BenchError(
            f"the known_hosts file '{known}' for the TRex server's host is missing; make it with:"
            f" ssh-keyscan -p {login.port} {login.host}"
        )
    secret = os.environ.get(login.password_from) if login.password_from else None
    if login.password_from and not secret:
        raise BenchError(
            "the testbed takes the password for the TRex server's host from the environment variable"
            f" '{login.password_from}', which is not set"
        )
    client = paramiko.SSHClient()
    client.load_host_keys(str(known))
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
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
        raise _refused(error, login) from None  # what caused it may hold the password
    return client


def _refused(error: Exception, login: Login) -> BenchError:
    known, who = login.known_hosts_path, f"the TRex server's host at {login.where}"
    if isinstance(error, paramiko.BadHostKeyException):
        return BenchError(
            f"{who} shows another host key than '{known}' holds; if the machine was really exchanged, remove the old"
            " line and add the new key"
        )
    if "not found in known_hosts" in str(error):
        return BenchError(
            f"the host key of {who} is not in '{known}'; compare its fingerprint at the console and add it, for"
            f" example with: ssh-keyscan -p {login.port} {login.host}"
        )
    if isinstance(error, paramiko.AuthenticationException):
        way = f"with the key '{login.key_path}'" if login.key_path else f"with the password in '{login.password_from}'"
        return BenchError(
            f"{who} refuses the login of '{login.user}' {way}; mend 'user' and 'key' of the generator's 'ssh' in the"
            " testbed file"
        )
    text = said(error).rstrip(".")
    return BenchError(f"no SSH login to {who}: {text}; check the generator's 'address' and 'ssh' in the testbed file")


def said(error: Exception) -> str:
    """What *error* says, without the number that paramiko does not know (``[Errno None]``)."""
    inner = error.errors.values() if isinstance(error, paramiko.ssh_exception.NoValidConnectionsError) else ()
    causes = {str(getattr(each, "strerror", None) or each) for each in inner}
    return ", ".join(sorted(causes)) or str(error).removeprefix("[Errno None] ") or type(error).__name__
