"""What Allure's listener left of an execution, as far as it is of the form that Allure reads.

Anybody may have put a file there, and a report that Allure cannot read lacks the test. So nothing is taken as it is: of
each object only the keys that a reader sees, of the right kind; no identity, which would make of two tests one and the
same, repeated; no word that a failure is known or muted.
"""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from ..files import write_whole
from ..json_text import parse_json
from .derived import allure_sums
from .run_files import sha256_of
from .tables import html_page

LARGEST_ATTACHMENT = 2 << 20
"""Bytes; what is larger is left out, and said so."""

STATUSES = ("passed", "broken", "failed", "skipped")

_LARGEST_RESULT = 16 << 20
_LARGEST_TIME = 1 << 53
_SLACK = 1000
"""ms between the listener's clock and the records': both round."""

_ATTACHMENT = re.compile(r"[\w-]{1,80}-attachment(\.\w{1,8})?", re.ASCII)
_TEXTS = ("uuid", "name", "fullName", "description", "descriptionHtml")
_LISTS = {
    "labels": ("name", "value"),
    "links": ("name", "url", "type"),
    "parameters": ("name", "value", "mode"),
    "attachments": ("name", "source", "type"),
}
_IDENTITIES = ("ALLURE_ID", "AS_ID")
"""Labels by which Allure knows a test before anything else."""


class LeftBehind:
    """Results by the test's long name, in the order of time, and the suites' fixtures. ``strange``: files left out.

    A file is strange if the execution summed its results (``derived.sha256``) and not this one, or another of its name.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "allure"
        self._sums = allure_sums(folder)
        self.strange: set[str] = set()
        self.results: dict[str, list[dict[str, Any]]] = defaultdict(list)
        # a test may be there twice: early, and as its suite wrote it
        once = {(found["uuid"], found.get("fullName")): found for found in map(_result, self._read("*-result.json"))}
        for found in sorted(once.values(), key=lambda data: data.get("start", 0)):
            self.results[found.get("fullName", "")].append(found)
        self.containers = [_container(data) for data in self._read("*-container.json")]

    def _read(self, pattern: str) -> Iterator[dict[str, Any]]:
        for path in sorted(self._folder.glob(pattern)):
            try:
                if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST_RESULT:
                    continue
                if not self._own(path):
                    continue
                data = parse_json(path.read_bytes())
            except (OSError, ValueError):
                continue  # a process was killed in it
            if isinstance(data, dict) and isinstance(data.get("uuid"), str):
                yield data

    def _own(self, path: Path) -> bool:
        if not self._sums or self._sums.get(path.name) == sha256_of(path):
            return True
        self.strange.add(path.name)
        return False

    def take(self, long_name: str, start: float, stop: float) -> dict[str, Any] | None:
        """The next result of the test that ran between *start* and *stop* (ms of Unix time); None: it left none."""
        found = self.results.get(long_name, [])
        for place, data in enumerate(found):
            if data.get("start", stop) <= stop + _SLACK and start - _SLACK <= data.get("stop", start):
                return found.pop(place)
        return None

    def rest(self, recorded: Collection[str]) -> list[dict[str, Any]]:
        """The tests that nothing was recorded of: no testbed was opened, or they have no sentence.

        *recorded*: long names of those that have records. A further result of one says nothing that they do not.
        """
        return [found for name, several in self.results.items() if name not in recorded for found in several]

    def copied(self, data: Any, to: Path) -> Any:
        """*data* with the files that it names copied *to*, each by a name of its own: another execution may have it.

        A file that is too large is replaced by a text that says so.
        """
        if isinstance(data, list):
            return [self.copied(item, to) for item in data]
        if not isinstance(data, dict):
            return data
        return {key: self._copy(item, to) if key == "source" else self.copied(item, to) for key, item in data.items()}

    def _copy(self, source: str, to: Path) -> str:
        known, path = _ATTACHMENT.fullmatch(source), self._folder / source
        ending = known[1] or "" if known else ""
        name = f"{uuid4()}-attachment{ending}"
        if not known or path.is_symlink() or not path.is_file() or not self._own(path):
            return name
        if (size := path.stat().st_size) > LARGEST_ATTACHMENT:
            words = f"left out of the report: {size} bytes; it is {path}\n"
            write_whole(to / name, html_page("left out", words) if ending == ".html" else words)
        else:
            shutil.copyfile(path, to / name, follow_symlinks=False)
        return name


def _result(data: Mapping[str, Any]) -> dict[str, Any]:
    """What Allure reads of a test, a step or a fixture, where it is of the right kind."""
    found: dict[str, Any] = {key: data[key] for key in _TEXTS if isinstance(data.get(key), str)}
    found |= {key: data[key] for key in ("start", "stop") if _is_time(data.get(key))}
    status, details, path = data.get("status"), data.get("statusDetails"), data.get("titlePath")
    found["status"] = status if status in STATUSES else "unknown"
    found["statusDetails"] = _texts(details, ("message", "trace")) if isinstance(details, dict) else {}
    found["titlePath"] = [part for part in path if isinstance(part, str)] if isinstance(path, list) else []
    for key, kinds in _LISTS.items():
        items = (_texts(item, kinds) for item in _objects(data, key))
        found[key] = [item for item in items if item.get("name") and item["name"] not in _IDENTITIES]
    found["attachments"] = [item for item in found["attachments"] if "source" in item]
    found["steps"] = [_result(step) for step in _objects(data, "steps")]
    return found


def _container(data: Mapping[str, Any]) -> dict[str, Any]:
    children = data.get("children")
    return {
        "children": [child for child in children if isinstance(child, str)] if isinstance(children, list) else [],
        **{key: [_result(fixture) for fixture in _objects(data, key)] for key in ("befores", "afters")},
    }


def _objects(data: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = data.get(key)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _texts(data: Mapping[str, Any], keys: Collection[str]) -> dict[str, str]:
    return {key: data[key] for key in keys if isinstance(data.get(key), str)}


def _is_time(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST_TIME
