"""The keyword library ``lineproof.robot.Lineproof``: components that share one open session."""

from __future__ import annotations

import atexit
import contextlib
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, ClassVar

from robot.api import logger
from robot.errors import RobotError
from robotlibcore import DynamicCore

from .. import __version__
from ..errors import BREAKDOWN_ERRORS, LineproofError, SlaFailure, TestbedError, in_words
from ..evidence import allure
from ..files import is_folder
from ..session.session import Session
from ..system.signals import handle_ending
from .acceptance import AcceptanceKeywords
from .characterisation import CharacterisationKeywords
from .router import RouterKeywords
from .sentences import SuiteListener
from .shared import Shared, time_argument
from .studies import StudyKeywords
from .testbed import TestbedKeywords


class Lineproof(DynamicCore):  # type: ignore[misc]  # robotlibcore has no types
    """Acceptance tests for router performance: a test case is a sentence of the contract.

    Suites do not import this library; they import its steps. In the settings:

    | Resource          lineproof/acceptance.resource
    | Suite Setup       Open Testbed For    netgate6100    software=vpp
    | Suite Teardown    Close Testbed

    A test case:

    | Internet Mix Fills The Line
    |     imix unidirectional ≥ 95% line rate

    = Verdicts =
    A keyword fails with ``FAIL:`` if the router did not keep the sentence, and with ``INCONCLUSIVE:`` if the testbed
    could not prove either. Any other failure is an error of a file, an argument or the testbed, never the router's.

    = Arguments =
    Times are Robot's time strings or seconds (``2 min``, ``0.5``). Frame sizes are bytes with FCS.
    """

    ROBOT_LIBRARY_SCOPE = "GLOBAL"
    ROBOT_LIBRARY_VERSION = __version__
    ROBOT_LIBRARY_DOC_FORMAT = "ROBOT"
    ROBOT_LIBRARY_CONVERTERS: ClassVar = {timedelta: time_argument}

    def __init__(self, project: str = "") -> None:
        """Find files in *project*: the folder that holds ``variables/``, or one below it; default: the suite's.

        Runs leave evidence in Robot's ``--outputdir``, else in ``results/`` of the project.
        """
        self._shared = Shared(project)
        self._acceptance, router = AcceptanceKeywords(self._shared), RouterKeywords(self._shared)
        components = [
            TestbedKeywords(self._shared, router, self._acceptance),
            router,
            self._acceptance,
            CharacterisationKeywords(self._shared),
            StudyKeywords(self._shared, lambda: self._acceptance.execution_folder),
        ]
        super().__init__(components)
        # only a library's listener gives Allure results from a plain `robot` call
        self.ROBOT_LIBRARY_LISTENER = [
            self._shared.interruption,
            CalmListener(
                allure.AllureListener(lambda: self._acceptance.allure_folder),
                self._what_is_lost,
                lambda: allure.remove_half_written(self._acceptance.allure_folder),
            ),
            CalmListener(SuiteListener(self._shared), "the suite could not be checked"),
            CalmListener(
                SimpleNamespace(ROBOT_LISTENER_API_VERSION=3, close=self.close), "the testbed could not be closed"
            ),
        ]
        # Robot tells a library of the end only if the topmost suite imports it, which a folder does not
        atexit.register(self._end)

    def run_keyword(self, name: str, args: Any, kwargs: Any = None) -> Any:
        """Run the keyword *name*; whatever goes wrong in it is one paragraph, which names what of the testbed died."""
        try:
            return super().run_keyword(name, args, kwargs)
        except TestbedError as error:
            ended = self._shared.opened[-1][1].testbed.problems() if self._shared.opened else ()
            if unnamed := [problem for problem in ended if problem not in str(error)]:
                raise TestbedError("; ".join([*unnamed, str(error)])) from error
            raise
        except (LineproofError, SlaFailure, RobotError):
            raise
        except Exception as error:  # an AssertionError of a library is not the router's fault either
            if hasattr(error, "ROBOT_CONTINUE_ON_FAILURE") or hasattr(error, "ROBOT_SKIP_EXECUTION"):  # of Robot's API
                raise
            raise TestbedError(in_words(error)) from error

    @property
    def session(self) -> Session:
        """The open session, for libraries that build on this one. Raises ConfigError if no testbed is open."""
        return self._shared.session

    def close(self) -> None:
        """Close what suites left open, each even if one before it fails. Harmless when repeated."""
        with ExitStack() as stack:
            stack.callback(self._acceptance.close_evidence)
            while self._shared.lent:
                stack.callback(self._shared.lent.popitem()[1].close)
            while self._shared.opened:
                stack.callback(self._shared.opened.pop(0)[1].close)

    def _what_is_lost(self) -> str:
        """Return what it means that Allure's listener fails."""
        if is_folder(self._acceptance.allure_folder):
            return "Allure's results are not complete, the verdicts and the records are"
        # Allure's is the first folder of all: without it there will be no run's either
        return "no results can be kept; expected a folder that can be made and written (robot --outputdir)"

    def _end(self) -> None:
        # what follows has a limit
        handle_ending(signal.SIG_IGN)
        try:
            self.close()
        except BREAKDOWN_ERRORS as error:
            with contextlib.suppress(OSError, ValueError):
                print(f"lineproof: {in_words(error)}", file=sys.__stderr__, flush=True)
        with contextlib.suppress(*BREAKDOWN_ERRORS):  # nobody reads on, or what is on the disk cannot be read
            summary, stream = self._acceptance.last_words(), sys.__stdout__
            if stream is not None:
                encoding = stream.encoding or "utf-8"  # of LANG=C, say
                print(summary.encode(encoding, "backslashreplace").decode(encoding), end="", file=stream, flush=True)


class CalmListener:
    """*listener*, whose errors are warnings, each kind once: what it writes follows from the records.

    *what*: what its errors mean, in words; *tidy*: removes what it left half written.
    """

    def __init__(self, listener: Any, what: str | Callable[[], str], tidy: Callable[[], None] = lambda: None) -> None:
        self.ROBOT_LISTENER_API_VERSION = listener.ROBOT_LISTENER_API_VERSION
        self._listener, self._what, self._tidy = listener, what, tidy
        self._warned: set[tuple[type, int | None]] = set()

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._listener, name)
        if name.startswith("_") or not callable(attribute):
            return attribute

        def call(*arguments: Any) -> None:
            try:
                attribute(*arguments)
            except RobotError:
                raise
            except Exception as error:  # what keeps a listener from writing must not end the run
                self._tidy()
                kind = type(error), getattr(error, "errno", None)
                if kind not in self._warned:
                    self._warned.add(kind)
                    logger.warn(f"{self._what if isinstance(self._what, str) else self._what()}: {in_words(error)}")

        return call
