"""Where the store is: a SQLite file, or PostgreSQL by URL. No password is ever shown."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, quote_plus

from ...errors import ConfigError
from ...system.installed import remedy

VARIABLE = "LINEPROOF_HISTORY"
"""The environment variable that names the store."""

FILE = "history.db"
"""In the project's folder of results, where no other store is named."""

EXPECTED = "expected a file, as results/history.db, or postgresql://USER@HOST/DATABASE"

MISSING_EXTRA = "the history needs the extra 'history': {remedy} ({module} is missing)"

_SECRETS = ("password", "passfile", "sslpassword", "sslkey")
"""Arguments of libpq that a URL may have after its '?'."""


@dataclass(frozen=True)
class StoreAddress:
    """``url``: as SQLAlchemy takes it, with its password; ``shown``: without; ``file``: of SQLite, None: PostgreSQL."""

    url: str
    shown: str
    file: Path | None
    secrets: tuple[str, ...] = ()

    def masked(self, text: str) -> str:
        """*text*, as of a database's error, without the password."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def store_address(given: str | None, results: Path, variables: Mapping[str, str] | None = None) -> StoreAddress:
    """The store that *given* names (``--store``), else the environment variable, else the file in *results*.

    Raises ConfigError for what is no address, or where the extra is not installed.
    """
    text = given or (os.environ if variables is None else variables).get(VARIABLE) or str(results / FILE)
    try:
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError
    except ImportError as error:
        raise ConfigError(MISSING_EXTRA.format(remedy=remedy("history"), module=error.name)) from None
    if "://" not in text:
        return _sqlite(Path(text))
    scheme, _, rest = text.partition("://")
    if scheme == "sqlite":
        if not rest.startswith("/") or len(rest) < 2 or "?" in rest:
            raise ConfigError(f"the store 'sqlite://…' names no file; {EXPECTED}")
        return _sqlite(Path(rest[1:]))
    if scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        kind = scheme if scheme.replace("+", "").isalnum() else "…"
        raise ConfigError(f"the store '{kind}://…' is of no known kind; {EXPECTED}")
    try:
        url = make_url(f"postgresql+psycopg://{rest}")
    except (ArgumentError, ValueError):
        raise ConfigError(f"the store '{scheme}://…' is no URL; {EXPECTED}") from None
    try:
        import psycopg  # noqa: F401  (is it there?)
    except ImportError as error:
        raise ConfigError(MISSING_EXTRA.format(remedy=remedy("history"), module=error.name or "psycopg")) from None
    hidden = [str(url.query[name]) for name in _SECRETS if name in url.query]
    secrets = [word for word in (str(url.password or ""), *hidden) if word]
    shown = url.set(password=None).difference_update_query([*_SECRETS]).set(drivername="postgresql")
    every = sorted({*secrets, *map(quote_plus, secrets), *map(quote, secrets)}, key=len, reverse=True)
    whole = url.render_as_string(hide_password=False)
    return StoreAddress(whole, shown.render_as_string(hide_password=True), None, tuple(every))


def _sqlite(path: Path) -> StoreAddress:
    from sqlalchemy.engine import URL

    whole = Path(os.path.abspath(path))  # noqa: PTH100  # a link stays the name that people know
    return StoreAddress(URL.create("sqlite", database=str(whole)).render_as_string(), str(path), whole)
