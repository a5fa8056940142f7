"""Allure's single page, made fit for a double click: nothing is asked of the network, and nothing is left to chance.

As Allure 3 writes it, the page (1) asks another company's server for a script that counts readers, and (2) has its
program before its data: if the program is ready first, it asks the network for the data, and the report stays empty.
Here the program comes last, scripts of others are gone, and a policy forbids the browser all network, whatever a name,
a message or an attachment contains.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from ..errors import TestbedError
from .listener_leavings import STATUSES

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline' data:; img-src data: blob:;"
    " font-src data:; media-src data: blob:; connect-src data: blob:; frame-src data: blob:; form-action 'none'"
)
"""Content Security Policy of the page; frames with attachments inherit it."""

COUNTS = "widgets/statistic.json"
"""The page's data with how many tests there are of each status."""

_SCRIPT = re.compile(r"<script\b([^>]*)>(.*?)</script>", re.DOTALL)
_SOURCE = re.compile(r"\bsrc\s*=\s*[\"']?([^\"'\s>]*)")
_OUTSIDE = re.compile(r"<(?:script|link|img|iframe|base)\b[^>]*?\b(?:src|href)\s*=\s*[\"']?(?!data:|#)[^\"'\s>]")
_COUNTS_READERS = re.compile(r"\bdataLayer\b|\bgtag\(")
_CHARSET = '<meta charset="utf-8">'


def mend_page(page: str, data: Mapping[str, Any]) -> str:
    """The *page* with its program last, the policy, and no script of others; *data*: what to replace in its data.

    Raises TestbedError if the page is not as this version of Allure writes it.
    """
    programs: list[str] = []
    holders = 0

    def kept(found: re.Match[str]) -> str:
        nonlocal holders
        source = _SOURCE.search(found[1])
        if source is None:
            if _COUNTS_READERS.search(found[2]):
                return ""
            holders += "allureReportData[" in found[2]
            return found[0]
        if source[1].startswith("data:"):
            programs.append(found[0])
        return ""

    mended = _SCRIPT.sub(kept, page)
    if len(programs) != 1 or holders != 1 or mended.count("</body>") != 1 or mended.count(_CHARSET) != 1:
        raise TestbedError("Allure's page is not as expected: it cannot be made to work without the network")
    for name, value in data.items():
        mended = _with_data(mended, name, value)
    policy = f'{_CHARSET}\n    <meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    mended = mended.replace(_CHARSET, policy).replace("</body>", f"{programs[0]}\n</body>")
    head = _SCRIPT.sub("", mended)
    if found := _OUTSIDE.search(head):
        raise TestbedError(f"Allure's page asks for something outside of it: {found[0]}")
    return mended


def check_counts(page: str, ids: Mapping[str, Collection[str]]) -> None:
    """Raise TestbedError unless the *page* counts as many tests of each status as *ids* has, and none as repeated."""
    found = re.search(rf'd\("{re.escape(COUNTS)}","([^"]*)"\)', page)
    counts = json.loads(base64.b64decode(found[1])) if found else {}
    expected = {status: len(tests) for status, tests in ids.items() if tests}
    if {name: counts.get(name, 0) for name in (*STATUSES, "unknown")} != {
        name: expected.get(name, 0) for name in (*STATUSES, "unknown")
    } or counts.get("retries"):
        raise TestbedError(f"Allure's page counts {counts} where the records and what Allure left are {expected}")


def _with_data(page: str, name: str, value: Any) -> str:
    text = base64.b64encode(json.dumps(value, ensure_ascii=False).encode()).decode("ascii")
    changed, count = re.subn(rf'd\("{re.escape(name)}","[^"]*"\)', lambda _: f'd("{name}","{text}")', page)
    if count != 1:
        raise TestbedError(f"Allure's page has no {name}: it is not as expected")
    return changed
