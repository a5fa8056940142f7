"""Who logs in where, and with what: one key or one password, known by name or path, never by its text.

Logins are in testbed files, and the connections of :mod:`.ssh` take them as they are there. Commands of a testbed's
file that run on this machine get the secrets that they name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, field_validator, model_validator

from ..config import Config, FilePath, matching
from ..errors import TestbedError
from ..visible import shortened
from . import children


@dataclass(frozen=True, slots=True)
class Secrets:
    """Secrets, which a testbed file names and never holds. Nothing shows the values, not even ``repr``.

    ``given``: by name, before the environment. ``plain``: variables of Robot that are no secrets, and are not used.
    """

    given: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    plain: Set[str] = field(default_factory=frozenset, repr=False, compare=False)

    def get(self, name: str) -> str:
        """Return the secret *name*, or ""."""
        return self.given.get(name) or os.environ.get(name, "")

    def read(self, name: str, what: str) -> str:
        """Return the secret *name*; *what*: ``password for the router``. Raises TestbedError if it is not set."""
        if secret := self.get(name):
            return secret
        if name in self.plain:
            problem = f"${{{name}}} is a variable that Robot writes into its logs; expected ${{{name}: Secret}}"
        else:
            state = "empty" if name in os.environ else "not set"
            problem = f"that environment variable is {state}; set it: read -rs {name}; export {name}"
        raise TestbedError(f"the testbed takes the {what} from '{name}', and {problem}")

    def masked(self, text: str, names: Iterable[str]) -> str:
        """Return *text* with ``***`` in place of the secrets *names*, which a machine may have echoed."""
        for name in names:
            secret = self.get(name).strip()
            # an echo of a key is read line by line
            for part in {secret, *(line.strip() for line in secret.splitlines() if not line.startswith("-----"))}:
                # a shorter one, or one of digits, would be found in too much else
                if len(part) >= 4 and not part.isdecimal() and part in text:
                    text = re.sub(rf"(?<![^\W_]){re.escape(part)}(?![^\W_])", "***", text)
        return text


ENVIRONMENT = Secrets()
"""The secrets of the environment alone."""


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


class Login(Config):
    """SSH to ``address``, with a key (``key`` or secret ``key_from``) or a password (``password_from``).

    What ends in ``from`` is the name of a secret: an environment variable, or Robot's variable of type Secret.
    ``passphrase_from``: the key's; without it ssh-agent has to hold such a key. A public key as ``key``: ssh-agent
    holds its private half. The machine's host key must be in the file ``known_hosts``, or have one of the fingerprints
    ``host_key``, ``SHA256:…``. ``jump``: the login through which the connection goes. ``sudo``: put ``sudo -n`` before
    commands that need root.
    """

    is_login: ClassVar[bool] = True

    address: HostName
    port: TcpPort = 22
    user: HostName
    key: FilePath | None = None
    known_hosts: Annotated[FilePath, Field(validate_default=True)] = Path("~/.ssh/known_hosts")
    password_from: Variable | None = None
    passphrase_from: Variable | None = None
    key_from: Variable | None = None
    host_key: Fingerprints = ()
    jump: Login | None = None
    sudo: bool = False

    _secrets: Secrets = PrivateAttr(ENVIRONMENT)

    def with_secrets(self, secrets: Secrets) -> Self:
        """Return the login with the *secrets* that it and its jump host may take theirs from."""
        login = self.model_copy(update={"jump": self.jump and self.jump.with_secrets(secrets)})
        login._secrets = secrets
        return login

    def secret(self, name: str, what: str) -> str:
        """Return its secret *name*; *what*: as of :meth:`Secrets.read`. Raises TestbedError if nothing has it."""
        return self._secrets.read(name, what)

    @property
    def where(self) -> str:
        """Return ``address:port``, for messages."""
        through = f" through {self.jump.where}" if self.jump else ""
        return f"{self.address}:{self.port}{through}"

    def masked(self, text: str) -> str:
        """Return *text* with ``***`` in place of this login's secrets, which a machine may have echoed."""
        names = filter(None, (self.password_from, self.passphrase_from, self.key_from))
        shown = self._secrets.masked(text, names)
        return self.jump.masked(shown) if self.jump else shown

    @field_validator("key", "known_hosts", mode="before")
    @classmethod
    def _check_path(cls, value: Any) -> Any:
        # a key that is pasted in place of its path is a path too, for pydantic
        if isinstance(value, str) and re.search(r"[\x00-\x1f]|-----BEGIN|^(ssh|ecdsa)-\S+ ", value):
            raise ValueError("must be the path of a file, not its content ('key_from' names a variable with a key)")
        return value

    @model_validator(mode="after")
    def _check_key_or_password(self) -> Self:
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


def login_at(value: Any) -> Any:
    """Give the login ``ssh`` among a machine's keys the machine's ``address``, before they are checked."""
    if isinstance(value, dict) and "address" in value and isinstance(value.get("ssh"), dict):
        return {**value, "ssh": {"address": value["address"], **value["ssh"]}}
    return value


class HostSettings(Config):
    """The machine where commands run: ``address`` by the login ``ssh``, or else this one."""

    address: HostName | None = None
    ssh: Login | None = None

    _login_at_address = model_validator(mode="before")(login_at)

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
    more = {name: secrets.read(name, f"secret for {who}") for name in names}
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
