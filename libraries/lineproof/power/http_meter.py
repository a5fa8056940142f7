"""Meters that answer HTTP with JSON: Shelly, Tasmota and others."""

from __future__ import annotations

import time
from typing import Any

from ..errors import TestbedError
from ..json_text import parse_json
from ..system.secrets import Secrets
from .figures import power
from .meter import NextFigure
from .settings import HttpMeterSettings

LIMIT = 3.0
"""Seconds for an answer, whole."""

MOST_BYTES = 64 * 1024

_FIELDS = {
    "shelly": ("/rpc/Switch.GetStatus?id={channel}", "apower"),
    "shelly-1": ("/status", "meters.{channel}.power"),
    "tasmota": ("/cm?cmnd=Status%208", "StatusSNS.ENERGY.Power"),
}
"""Path and field of the active power in W: Shelly's API references of both generations; Tasmota's *Commands*, Status 8
(a plug with several channels answers with a list)."""


class HttpMeter:
    """A meter that answers with JSON."""

    covers = "what is plugged into it"

    def __init__(self, settings: HttpMeterSettings, secrets: Secrets) -> None:
        self._secrets = secrets
        self._factor = settings.factor
        self.interval, self.settle = settings.interval, settings.settle
        if settings.kind == "json":
            self._url, self._field = settings.url or "", settings.field or ""
        else:
            path, field = (text.format(channel=settings.channel) for text in _FIELDS[settings.kind])
            self._url, self._field = f"http://{settings.address}{path}", field
        self._channel = settings.channel
        self._settings = settings
        self.text = f"{settings.kind} at {self._url.partition('?')[0]}"

    def begin(self) -> NextFigure:
        """One request for each figure: the meter keeps none for us."""
        return self.watts

    def watts(self) -> float:
        """One request. Raises TestbedError."""
        return self._factor * power(_found(self._answer(), self._field, self._channel, self.text), self.text)

    def _answer(self) -> Any:
        # an extra of the package, which nothing else needs
        try:
            import requests
        except ImportError:
            raise TestbedError("a power meter over HTTP needs Lineproof's extra 'power'") from None
        from requests.auth import HTTPBasicAuth, HTTPDigestAuth

        auth, login = None, {}
        if self._settings.user is not None:
            password = self._secrets.read(self._settings.password_from or "", "password", "the power meter")
            if self._settings.kind == "tasmota":  # takes them in the address alone
                login = {"user": self._settings.user, "password": password}
            else:
                kind = HTTPDigestAuth if self._settings.kind == "shelly" else HTTPBasicAuth
                auth = kind(self._settings.user, password)
        deadline = time.monotonic() + LIMIT
        try:
            with requests.Session() as session:
                session.trust_env = False  # no proxy, no .netrc: nothing is sent beyond the meter
                with session.get(
                    self._url, params=login, auth=auth, timeout=LIMIT, stream=True, allow_redirects=False
                ) as response:
                    if response.status_code != 200:
                        raise TestbedError(
                            f"the meter {self.text}: answered with status {response.status_code}{self._hint(response)}"
                        )
                    body = b""
                    for part in response.iter_content(4096):
                        body += part
                        if len(body) > MOST_BYTES or time.monotonic() > deadline:
                            raise TestbedError(
                                f"the meter {self.text}: its answer is longer than {MOST_BYTES} bytes or {LIMIT:g} s"
                            )
            return parse_json(body, MOST_BYTES, strict=False)
        except requests.RequestException as error:
            late = isinstance(error, requests.Timeout)
            words = f"did not answer within {LIMIT:g} s" if late else "does not answer, or breaks off"
            raise TestbedError(f"the meter {self.text}: {words}; check address and cable") from None
        except ValueError:
            raise TestbedError(f"the meter {self.text}: its answer is no JSON") from None

    def _hint(self, response: Any) -> str:
        if response.status_code == 401:
            return "; it asks for a login: fix 'user' and 'password_from'"
        if response.status_code == 404 and self._settings.kind.startswith("shelly"):
            other = "shelly-1" if self._settings.kind == "shelly" else "shelly"
            return f"; of another generation? Try 'kind: {other}'"
        return ""

    def close(self) -> None:
        """Nothing is held between two requests."""


def _found(answer: Any, field: str, channel: int, text: str) -> Any:
    """The value at *field*, whose parts are keys and indices."""
    found = answer
    for part in field.split("."):
        if isinstance(found, dict) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            raise TestbedError(f"the meter {text}: its answer has no '{field}'; is it another kind of meter?")
    if isinstance(found, list) and channel < len(found):
        return found[channel]
    return found
