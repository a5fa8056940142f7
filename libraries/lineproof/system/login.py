"""Who logs in where, and with what: one key or one password, known by name or path, never by its text.

Logins as testbed files have them, and as the connections of :mod:`.ssh` take them; commands of a testbed's file that
run on this machine, with the secrets that they name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from ..config import Config, FilePath, matching
from ..errors import TestbedError
from ..visible import shortened
from . import children

SHORTEST_MASKED = 4
"""Characters of a secret that is masked; a shorter one, or one of digits, would be found in too much else."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """Secrets, which a testbed file names and never holds. Nothing shows the values, not even ``repr``.

    ``given``: by name, before the environment. ``plain``: variables of Robot that are no secrets, and are not used.
    """

    given: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    plain: Set[str] = field(default_factory=frozenset, repr=False, compare=False)

    def get(self, name: str) -> str:
        """The secret *name*, or ""."""
        return self.given.get(name) or os.environ.get(name, "")

    def read(self, name: str, what: str, who: str) -> str:
        """The secret *name*: the *what* for *who*. Raises TestbedError if nothing has it."""
        if found := self.get(name):
            return found
        if name in self.plain:
            raise TestbedError(
                f"the testbed takes the {what} for {who} from '{name}', and ${{{name}}} is a variable that Robot writes"
                f" into its logs; expected one of type Secret: ${{{name}: Secret}}"
            )
        raise TestbedError(
            f"the testbed takes the {what} for {who} from the environment variable '{name}', which is"
            f" {'empty' if name in os.environ else 'not set'}; set it: read -rs {name}; export {name}"
        )

    def masked(self, text: str, names: Iterable[str]) -> str:
        """Return *text* with ``***`` in place of the secrets *names*, which a machine may have echoed."""
        for secret in self._texts(names):
            if len(secret) >= SHORTEST_MASKED and not secret.isdecimal() and secret in text:
                text = re.sub(rf"(?<![^\W_]){re.escape(secret)}(?![^\W_])", "***", text)
        return text

    def _texts(self, names: Iterable[str]) -> Iterator[str]:
        """Secrets, and the lines of those that are keys: an echo is read line by line."""
        for name in names:
            secret = self.get(name)
            yield secret.strip()
            if "\n" in secret.strip():
                yield from (line for line in map(str.strip, secret.splitlines()) if not line.startswith("-----"))


ENVIRONMENT = Secrets()
"""The secrets of the environment alone."""


@dataclass(frozen=True, slots=True)
class Login:
    """``host:port`` as ``user``, by the key in ``key_path`` or ``key_from``, or the password ``password_from``.

    What ends in ``from`` is the name of a secret. A key with a passphrase: that is ``passphrase_from``, or ssh-agent
    holds the key. A public key in ``key_path``: ssh-agent holds the private half. The machine's host key must be in
    the file ``known_hosts_path``, or have one of the fingerprints ``host_keys``. ``jump``: the login through which
    the connection goes. ``sudo``: the user is not root, and commands need ``sudo``.
    """

    host: str
    port: int
    user: str
    key_path: Path | None
    known_hosts_path: Path
    password_from: str | None = None
    passphrase_from: str | None = None
    key_from: str | None = None
    host_keys: tuple[str, ...] = ()
    jump: Login | None = None
    sudo: bool = False
    secrets: Secrets = field(default_factory=Secrets)

    @property
    def where(self) -> str:
        """``host:port``, for messages."""
        through = f" through {self.jump.where}" if self.jump else ""
        return f"{self.host}:{self.port}{through}"

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Return what its secrets are called, and those of its jump host."""
        own = tuple(name for name in (self.password_from, self.passphrase_from, self.key_from) if name)
        return own + (self.jump.secret_names if self.jump else ())

    def masked(self, text: str) -> str:
        """*text* with ``***`` in place of this login's secrets, which a machine may have echoed."""
        return self.secrets.masked(text, self.secret_names)


# -- logins in testbed files: where, as whom, and with which one credential


def _of_its_own(value: str) -> str:
    if children.is_handed_on(value):
        raise ValueError(f"'{value}' is a variable that every program gets; expected one of its own: ROUTER_PASSWORD")
    return value


Variable = Annotated[
    str,
    matching(
        "[A-Z_][A-Z0-9_]*", "expected the name, in capitals, of an environment variable that holds it, not the secret"
    ),
    AfterValidator(_of_its_own),
]
HostName = Annotated[
    str,
    matching("(?!-)[A-Za-z0-9_.:-]{1,253}", "is not a name or address; expected letters, digits and any of . : _ -"),
]
TcpPort = Annotated[int, Field(ge=1, le=65535)]
Fingerprint = Annotated[
    str,
    matching(
        "SHA256:[A-Za-z0-9+/]{43}",
        "must be the fingerprint that 'ssh-keygen -l' shows, as SHA256: and 43 characters",
    ),
]
Fingerprints = Annotated[
    tuple[Fingerprint, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
]


class LoginSettings(Config):
    """SSH with the key in a file or in the secret ``key_from``, or with the password that is ``password_from``.

    A secret is an environment variable, or Robot's variable of type Secret. ``passphrase_from``: the key's; without it
    ssh-agent has to hold such a key. A public key as ``key``: ssh-agent holds its private half. ``host_key``: one
    fingerprint or several, ``SHA256:…``, in place of ``known_hosts``. ``jump``: the way there.
    """

    is_login: ClassVar[bool] = True

    port: TcpPort = 22
    user: HostName
    key: FilePath | None = None
    known_hosts: Annotated[FilePath, Field(validate_default=True)] = Path("~/.ssh/known_hosts")
    password_from: Variable | None = None
    passphrase_from: Variable | None = None
    key_from: Variable | None = None
    host_key: Fingerprints = ()
    jump: JumpSettings | None = None

    def login(self, address: str, secrets: Secrets) -> Login:
        """The login to the machine *address*."""
        return Login(
            address,
            key_path=self.key,
            known_hosts_path=self.known_hosts,
            host_keys=self.host_key,
            jump=self.jump.login(self.jump.address, secrets) if self.jump else None,
            secrets=secrets,
            **self.model_dump(include={"port", "user", "password_from", "passphrase_from", "key_from"}),
        )

    @field_validator("key", "known_hosts", mode="before")
    @classmethod
    def _check_path(cls, value: Any) -> Any:
        # a key that is pasted in place of its path is a path too, for pydantic
        if isinstance(value, str) and re.search(r"[\x00-\x1f]|-----BEGIN|^(ssh|ecdsa)-\S+ ", value):
            raise ValueError("must be the path of a file, not its content ('key_from' names a variable with a key)")
        return value

    @model_validator(mode="after")
    def _check_key_or_password(self) -> LoginSettings:
        if sum(way is not None for way in (self.key, self.key_from, self.password_from)) != 1:
            raise ValueError(
                "needs either 'key', the path of a private key, or the name of a variable: 'password_from', or"
                " 'key_from' for the key itself"
            )
        if self.password_from is not None and self.passphrase_from is not None:
            raise ValueError("has 'passphrase_from', the variable of a key's passphrase, and no 'key'")
        if self.host_key and "known_hosts" in self.model_fields_set:
            raise ValueError("has both 'host_key' and 'known_hosts'; expected one of them")
        return self


class JumpSettings(LoginSettings):
    """A machine through whose SSH server another one is reached."""

    address: HostName


# the settings that inherit from it are elsewhere, where this name is not known
LoginSettings.model_rebuild()


class HostSettings(Config):
    """Where commands run: at ``address`` by the login ``ssh``; without them on this machine."""

    address: HostName | None = None
    ssh: LoginSettings | None = None

    @model_validator(mode="after")
    def _check_login(self) -> Self:
        if (self.address is None) != (self.ssh is None):
            raise ValueError("'address' and 'ssh' belong together; without both it is this machine")
        return self


# -- commands that run here, with the secrets that they name


COMMAND_LIMIT = 30.0
"""Seconds for a command."""

Command = Annotated[str, Field(min_length=1, max_length=2000)]
"""A line for ``/bin/sh``."""


def run_here(command: str, names: Sequence[str], secrets: Secrets, who: str) -> str:
    """Return what *command* prints, run by /bin/sh with the secrets *names* in its environment alone.

    The secrets are masked in what it prints. *who*: the device, for messages. Raises TestbedError if the command fails
    or takes longer than COMMAND_LIMIT s.
    """
    more = {name: secrets.read(name, "secret", who) for name in names}
    try:
        ran = children.run(("/bin/sh", "-c", command), COMMAND_LIMIT, env=children.environment(more))
    except OSError as error:
        raise TestbedError(f"{who}: no command runs on this machine: {error.strerror}") from None
    except children.TimeoutExpired:
        raise TestbedError(f"{who}: its command did not end within {COMMAND_LIMIT:g} s") from None
    if ran.returncode:
        reason = shortened(secrets.masked(ran.stderr, names).strip()) or "no reason"
        raise TestbedError(f"{who}: its command failed with status {ran.returncode}: {reason}")
    return secrets.masked(ran.stdout, names)
