"""Reading values over SNMP: version 2c or 3, with pysnmp."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from ..config import Config, matching
from ..errors import BREAKDOWN_ERRORS, TestbedError
from .children import is_handed_on
from .secrets import Secrets

LIMIT = 2.0
"""Seconds for an answer; asked twice."""


def _of_its_own(value: str) -> str:
    if is_handed_on(value):
        raise ValueError(f"'{value}' is a variable that every program gets; expected one of its own: METER_PASSWORD")
    return value


Host = Annotated[
    str,
    matching("(?!-)[A-Za-z0-9_.:-]{1,253}", "expected a name or address of letters, digits and any of . : _ -"),
]
Variable = Annotated[
    str,
    matching(
        "[A-Z_][A-Z0-9_]*", "expected the name, in capitals, of an environment variable that holds it, not the secret"
    ),
    AfterValidator(_of_its_own),
]


class SnmpSettings(Config):
    """Where and how to ask.

    Version 2c with the community in the variable ``community_from``, or version 3 with ``user`` and the variables of
    its passwords (SHA-256, AES-128).
    """

    address: Host
    port: Annotated[int, Field(ge=1, le=65535)] = 161
    community_from: Variable | None = None
    user: Annotated[str, Field(max_length=32)] | None = None
    authentication_from: Variable | None = None
    privacy_from: Variable | None = None

    @model_validator(mode="after")
    def _check_version(self) -> Self:
        if (self.community_from is None) == (self.user is None):
            raise ValueError("needs either 'community_from' (version 2c) or 'user' (version 3)")
        if self.privacy_from is not None and self.authentication_from is None:
            raise ValueError("'privacy_from' needs 'authentication_from' too")
        return self


def snmp_values(settings: SnmpSettings, oids: Sequence[str], secrets: Secrets, who: str, extra: str) -> list[str]:
    """The values of *oids*, as text, in one request. *who*: the machine; *extra*: of the package that brings pysnmp.

    Raises TestbedError.
    """
    return asyncio.run(_values(settings, oids, secrets, who, extra))


async def _values(settings: SnmpSettings, oids: Sequence[str], secrets: Secrets, who: str, extra: str) -> list[str]:
    try:
        from pyasn1.error import PyAsn1Error
        from pysnmp.error import PySnmpError
        from pysnmp.hlapi.v3arch import asyncio as snmp
    except ImportError:
        raise TestbedError(f"{extra} over SNMP needs Lineproof's extra 'power'") from None
    engine = snmp.SnmpEngine()
    try:
        where = await snmp.UdpTransportTarget.create((settings.address, settings.port), timeout=LIMIT, retries=1)
        asked = [snmp.ObjectType(snmp.ObjectIdentity(oid)) for oid in oids]
        login = _login(snmp, settings, secrets, extra)
        problem, status, _, rows = await snmp.get_cmd(engine, login, where, snmp.ContextData(), *asked)
    except TestbedError:
        raise
    except (PySnmpError, PyAsn1Error, *BREAKDOWN_ERRORS) as error:
        raise TestbedError(f"{who}: {error}; check address and login") from None
    finally:
        engine.close_dispatcher()
    if problem or status:
        words = str(problem) if problem else str(status.prettyPrint())
        raise TestbedError(f"{who}: {words}; check address, login and object identifier")
    if len(rows) != len(oids):
        raise TestbedError(f"{who}: {len(rows)} values in place of {len(oids)}")
    return [str(row[1].prettyPrint()) for row in rows]


def _login(snmp: Any, settings: SnmpSettings, secrets: Secrets, extra: str) -> Any:
    secret = partial(secrets.read, who=extra.replace("a ", "the ", 1))
    if settings.community_from is not None:
        return snmp.CommunityData(secret(settings.community_from, "community"), mpModel=1)
    keys: dict[str, Any] = {}
    if settings.authentication_from is not None:
        keys |= {
            "authKey": secret(settings.authentication_from, "authentication key"),
            "authProtocol": snmp.USM_AUTH_HMAC192_SHA256,
        }
    if settings.privacy_from is not None:
        keys |= {"privKey": secret(settings.privacy_from, "privacy key"), "privProtocol": snmp.USM_PRIV_CFB128_AES}
    return snmp.UsmUserData(settings.user, **keys)
