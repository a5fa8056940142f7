"""Robot listener: writes every sentence of a dry run to a file, for programs that do not import Robot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from robot.api import TestSuite
from robot.errors import VariableError
from robot.libraries.BuiltIn import BuiltIn

from . import suite_sentences
from .suite_sentences import KeywordCall


class SentenceListing:
    """``robot --dryrun --listener lineproof.robot.sentence_listing.SentenceListing:FILE``: a line of JSON for each.

    ``test``, ``sentence`` with the values of its variables, ``where``; ``unknown``: it has a variable that is set
    during a run, so nobody knows it before. Sentences of a suite's own keywords count once, for the suite.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def start_suite(self, data: TestSuite, result: Any) -> None:
        """List what all tests share."""
        for step in suite_sentences.shared_steps(data):
            self._add(data.name, step)

    def start_test(self, data: Any, result: Any) -> None:
        """List the test's own."""
        for step in suite_sentences.steps_of(data):
            self._add(data.name, step)

    def _add(self, test: str, step: KeywordCall) -> None:
        text = suite_sentences.sentence(step)
        if text is None:
            return
        unknown = step.needs_the_run()
        if not unknown:
            try:
                text = str(BuiltIn().replace_variables(text))
            except VariableError:  # one that does not exist yet
                unknown = True
        row = {"test": test, "sentence": text, "where": step.where, "unknown": unknown}
        with self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(row) + "\n")
