"""Power distribution units, read by SNMP."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from ..errors import BREAKDOWN_ERRORS, TestbedError
from ..system.secrets import Secrets
from .figures import power
from .settings import SnmpMeterSettings

LIMIT = 2.0
"""Seconds for an answer; asked twice."""


class SnmpMeter:
    """One outlet of a power distribution unit."""

    covers = "what is plugged into its outlet"

    def __init__(self, settings: SnmpMeterSettings, secrets: Secrets) -> None:
        self._settings, self._secrets = settings, secrets
        self.interval, self.settle = settings.interval, settings.settle
        self.text = f"snmp at {settings.address}:{settings.port}, {settings.oid}"

    def watts(self) -> float:
        """One request. Raises TestbedError."""
        return self._settings.factor * power(asyncio.run(self._asked()), self.text)

    async def _asked(self) -> Any:
        try:
            from pyasn1.error import PyAsn1Error
            from pysnmp.error import PySnmpError
            from pysnmp.hlapi.v3arch import asyncio as snmp
        except ImportError:
            raise TestbedError("a power meter over SNMP needs 'pip install linerate[power]'") from None
        settings = self._settings
        engine = snmp.SnmpEngine()
        try:
            where = await snmp.UdpTransportTarget.create((settings.address, settings.port), timeout=LIMIT, retries=1)
            problem, status, _, rows = await snmp.get_cmd(
                engine, self._login(snmp), where, snmp.ContextData(), snmp.ObjectType(snmp.ObjectIdentity(settings.oid))
            )
        except TestbedError:
            raise
        except (PySnmpError, PyAsn1Error, *BREAKDOWN_ERRORS) as error:
            raise TestbedError(f"the meter {self.text}: {error}; check address and login") from None
        finally:
            engine.close_dispatcher()
        if problem or status:
            words = str(problem) if problem else str(status.prettyPrint())
            raise TestbedError(f"the meter {self.text}: {words}; check address, login and object identifier")
        return rows[0][1].prettyPrint()

    def _login(self, snmp: Any) -> Any:
        settings, secret = self._settings, partial(self._secrets.read, who="the power meter")
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

    def close(self) -> None:
        """Nothing is held between two requests."""
