"""SSH logins in testbed files: where, as whom, and with which one credential."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ..config import Config, FilePath, matching
from .local_command import Variable
from .login import Login, Secrets

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
        return Login(**self.fields_of_login(address, secrets))

    def fields_of_login(self, address: str, secrets: Secrets) -> dict[str, Any]:
        """The fields of :class:`Login`."""
        return {
            **self.model_dump(include={"port", "user", "password_from", "passphrase_from", "key_from"}),
            "host": address,
            "key_path": self.key,
            "known_hosts_path": self.known_hosts,
            "host_keys": self.host_key,
            "jump": self.jump.login(self.jump.address, secrets) if self.jump else None,
            "secrets": secrets,
        }

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
