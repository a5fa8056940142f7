"""Allure results without a flag on the command line: a listener for a Robot library, attachments, run-wide files.

A test has the steps that the suite's file names, its table and picture; what keywords log is in Robot's own log. What
Robot and Allure do to a library's listener is in ``docs/evidence.md``.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn
from robot.running.context import EXECUTION_CONTEXTS

from ..errors import TestbedError, in_words
from ..files import write_whole
from ..visible import one_line

SETTINGS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
"""The categories of Allure's page. The first category that matches counts: SLA not kept, inconclusive, configuration.

Their expressions mean the same in JavaScript (Allure 3) and Python.
"""


class AllureListener:
    """Robot listener (API 2) around ``allure_robotframework``, changed so that a library can have it.

    *path*: where the results go, or a function that says so when the first suite starts.

    It is registered with Allure from the outermost suite's start to its end, and stays idle beside the user's own
    listener. A test whose message has no ``FAIL:`` is *broken*, not *failed*: it is not the router's fault.
    """

    ROBOT_LISTENER_API_VERSION = 2

    def __init__(self, path: Path | Callable[[], Path]) -> None:
        self._path = path
        self._inner: Any = None
        self._depth = 0
        self._case: Any = None
        self._folder = Path()
        self._early: list[Path] = []
        self._keywords = 0

    def start_suite(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Begin with the outermost suite, unless idle."""
        if self._depth == 0 and not BuiltIn().dry_run_active and _listening() is None:
            # imported here: the import creates Allure's plugin manager
            from allure_robotframework import allure_robotframework

            self._folder = self._path() if callable(self._path) else self._path
            self._inner = allure_robotframework(str(self._folder))
            self._inner.title_path = _parents()
        self._depth += 1
        if self._inner:
            self._inner.start_suite(name, attributes)

    def end_suite(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Write the suite's tests; end with the outermost suite."""
        if self._inner:
            self._inner.end_suite(name, attributes)
            while self._early:
                self._early.pop().unlink(missing_ok=True)
        self._depth = max(0, self._depth - 1)
        if self._depth == 0:
            self.close()

    def start_test(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Begin a test."""
        if self._inner:
            self._inner.start_test(name, attributes)
            with self._inner.lifecycle.update_test_case() as case:
                self._case = case

    def end_test(self, name: str, attributes: Mapping[str, Any]) -> None:
        """End a test, correct its status and suites, and write it."""
        from attr import asdict

        case, self._case = self._case, None
        if case is None:
            return
        self._inner.end_test(name, dict(attributes))
        not_kept = SETTINGS["categories"][0]["messageRegex"]
        if attributes["status"] == "FAIL" and not re.fullmatch(not_kept, attributes["message"]):
            case.status = "broken"
        case.titlePath = list(self._inner.title_path)
        case.labels = [label for label in case.labels if label.name not in ("parentSuite", "suite", "subSuite")]
        case.labels += _suite_labels(case.titlePath)
        # the suite's end writes all of it, but a run may be killed before
        data = asdict(case, filter=lambda _, value: value or value is False)
        self._early.append(self._folder / case.file_pattern.format(prefix=case.uuid))
        with contextlib.suppress(TestbedError):  # the suite's end says so
            write_whole(self._early[-1], json.dumps(data, ensure_ascii=False))

    def start_keyword(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Begin a step."""
        self._keywords += 1
        if self._inner is None or self._keywords > 1:
            return
        from allure_commons.utils import now

        # without the name of the resource, which says nothing about the test
        self._inner.start_keyword(attributes["kwname"] or str(attributes["type"]), attributes)
        for update in (self._inner.lifecycle.update_before_fixture, self._inner.lifecycle.update_after_fixture):
            with update() as fixture:
                if fixture is not None and fixture.start is None:
                    fixture.start = now()

    def end_keyword(self, name: str, attributes: Mapping[str, Any]) -> None:
        """End a step."""
        self._keywords -= 1
        if self._inner and not self._keywords:
            self._inner.end_keyword(name, attributes)

    def close(self) -> None:
        """Unregister from Allure. Harmless when repeated."""
        if self._inner:
            self._inner.close()
        self._inner = self._case = None
        self._depth = 0


def attach(name: str, body: str, kind: Literal["SVG", "HTML"]) -> None:
    """Attach a picture, or a page without scripts (Allure 3 shows scripted ones blank), to the running test.

    Outside of a test it belongs to the set-up or tear-down that runs. Without an Allure listener nothing happens, nor
    with the fifth of a test, or one of more than 100 kB: Robot's log has all of them.
    """
    from allure_commons.types import AttachmentType
    from allure_commons.utils import uuid4

    if (listening := _listening()) is None or len(body.encode()) > 100_000:
        return
    lifecycle = listening.lifecycle
    # to the test itself, not to the keyword that happens to run: there a reader looks first
    with lifecycle.update_test_case() as case:
        parent = case.uuid if case and BuiltIn().get_variable_value("${TEST NAME}") is not None else None
        if parent and len(case.attachments) >= 4:
            return
    # outside any test or keyword there is nothing to attach to
    with contextlib.suppress(KeyError):
        try:
            lifecycle.attach_data(uuid4(), body, name=name, attachment_type=AttachmentType[kind], parent_uuid=parent)
        except OSError as error:  # what is attached follows from the records: the verdict stays
            logger.warn(f"Allure's report will lack '{name}': {in_words(error)}")


def add_parameters(parameters: Mapping[str, str]) -> None:
    """Add *parameters* to the running test. Without an Allure listener nothing happens."""
    from allure_commons.model2 import Parameter

    if (listening := _listening()) is not None:
        with listening.lifecycle.update_test_case() as case:
            if case is not None:
                case.parameters += [Parameter(name, value) for name, value in parameters.items()]


def write_environment(path: Path, facts: Mapping[str, object]) -> None:
    """Write ``environment.properties`` into Allure's folder *path*: a line per fact."""
    # a key ends at the first of these characters
    values = {re.sub("([ :=#!])", r"\\\1", _value(name)): _value(str(value)) for name, value in facts.items()}
    _write(path / "environment.properties", "".join(f"{key} = {value}\n" for key, value in values.items()))


def write_categories(path: Path, title: str = "Lineproof", simulated: bool = False) -> None:
    """Write categories and *title* into Allure's folder *path*, as the settings that its command line is told of."""
    settings = SETTINGS | {"name": f"{title} – SIMULATED, not a measurement" if simulated else title}
    _write(path / "allurerc.json", json.dumps(settings, indent=2, ensure_ascii=False) + "\n")


def remove_half_written(path: Path) -> None:
    """Remove what Allure could not write to its end in its folder *path*."""
    with contextlib.suppress(OSError):
        for file in path.glob("*.tmp"):
            file.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text)
    except TestbedError as error:
        logger.warn(f"Allure's report will lack something: {error}")


def _listening() -> Any:
    """Return the Allure listener that is registered now, if any."""
    from allure_commons import plugin_manager
    from allure_robotframework.allure_listener import AllureListener as Registered

    return next((plugin for plugin in plugin_manager.get_plugins() if isinstance(plugin, Registered)), None)


def _parents() -> list[str]:
    """Return the names of the suites above the one that starts."""
    names: list[str] = []
    suite = EXECUTION_CONTEXTS.current.suite
    while suite := suite.parent:
        names.insert(0, suite.name)
    return names


def _suite_labels(path: list[str]) -> list[Any]:
    from allure_commons.model2 import Label

    if len(path) > 2:
        return [Label("parentSuite", path[0]), Label("suite", path[1]), Label("subSuite", " / ".join(path[2:]))]
    return [Label(kind, name) for kind, name in zip(("suite", "subSuite"), path, strict=False)]


def _value(text: str) -> str:
    """Return *text*, which people read in one line, for a Java properties file in ASCII."""
    return json.dumps(one_line(text))[1:-1]
