"""Keywords that run a study and claim something of its results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from robot.api import logger
from robot.api.deco import keyword
from robot.libraries.BuiltIn import BuiltIn

from ..errors import ConfigError, Inconclusive, SlaFailure
from ..evidence import allure
from ..units import counted, figure
from .shared import Component, Shared, add_to_test_message, check_run_variables, narrow, secrets_of_variables

# what runs a study and shows its results is imported by the keywords that need it: few suites run one

if TYPE_CHECKING:
    from ..studies.results import Compared, StudyCell, StudyResults

LEAST_VALUES = 3
"""Values of each sample, for a claim that no difference is proven: the interval of fewer has room for almost any."""


class StudyKeywords(Component):
    """Runs a study of ``variables/studies``; each test of its suite then claims something of its results.

    A claim that does not hold fails with ``FAIL:``; one about figures that were not measured with ``INCONCLUSIVE:``.
    """

    def __init__(self, shared: Shared, execution_folder: Callable[[], Path]) -> None:
        super().__init__(shared)
        self._execution_folder = execution_folder
        self._read: StudyResults | None = None

    @keyword(tags=["studies"])
    def run_study(self, name: str, testbed: str = "", goal: str = "") -> StudyResults:
        """Measure the study *name*, and leave tables, pictures and CSV in the run's folder.

        *testbed* and *goal*: by default those of the run. It opens and closes the testbed itself, once for each
        software of the router, and says first how long it takes. Example:
        | Suite Setup    Run Study    netgate6100
        """
        from ..studies.forms import headline, notes, page, write_page
        from ..studies.results import read_results
        from ..studies.runner import StudyRun

        self._read, variable = None, BuiltIn().get_variable_value
        testbed, goal = testbed or variable("${TESTBED}"), goal or variable("${GOAL}")
        self.shared.interruption.watch()
        check_run_variables()
        folder, project, secrets = self._execution_folder(), self.shared.project, secrets_of_variables()
        run = StudyRun(project, name, testbed, goal, None, secrets, logger.console)
        self._read = results = read_results(run.run(folder.parent, folder.name))
        shown = write_page(results)
        allure.attach(results.study.title, page(results), "HTML")
        for note in notes(results):
            logger.info(note)
        logger.info(f"{headline(results)}; {shown}", also_console=True)
        return results

    @keyword(tags=["studies"])
    def published_figures_should_be_met(self, row: str = "", at_least: float = 0.95, explained: bool = False) -> None:
        """*at_least* this share (0..1) of the published figures is within the study's tolerance.

        *row*: of this row alone. *explained*: whether the study's file has to explain each of the others. Lists those,
        with the study's explanation. Example:
        | Published Figures Should Be Met    at_least=0.85    explained=True
        """
        cells = [cell for cell in self._results.published if row in ("", cell.row)]
        if not cells:
            raise ConfigError(f"the study has no published figures{f' of row {row}' if row else ''}")
        outside = [cell for cell in cells if not cell.inside]
        met = f"{len(cells) - len(outside)} of {counted(len(cells), 'published figure')} met"
        listed = "; ".join(map(_outside_words, outside))
        if len(outside) > (1 - at_least) * len(cells) + 1e-9:
            raise self._failure(f"{met}, expected {100 * at_least:g} %: {listed}")
        if explained and (bare := "; ".join(_outside_words(cell) for cell in outside if not cell.explanation)):
            raise self._failure(f"{met}, and the study's file does not explain: {bare}")
        logger.info(f"{met}{f'; outside: {listed}' if listed else ''}", also_console=True)

    @keyword(tags=["studies"])
    def every_figure_should_be_measured(self) -> None:
        """No row of any variant is a gap, as are values of fewer than half of its blocks; else ``INCONCLUSIVE:`` with
        the reasons. Example:
        | Every Figure Should Be Measured
        """
        if gaps := self._results.failures:
            listed = "; ".join(f"{cell.row}, {cell.variant}: {_why_no_value(cell)}" for cell in gaps)
            raise self._unproven(f"{counted(len(gaps), 'figure')} not measured: {listed}")

    @keyword(tags=["studies"])
    def figure_should_be(self, row: str, variant: str, comparison: Literal["≥", "≤", ">=", "<="], value: float) -> None:
        """The median of *row* on *variant* is at least or at most *value*: a number, in the row's unit. Example:
        | Figure Should Be    64b unidirectional    vpp-3q    ≥    90
        """
        cell, is_least = self._cell(row, variant), comparison in ("≥", ">=")
        if cell.summary is None:
            raise self._unproven(f"{row}, {variant} was not measured: {_why_no_value(cell)}")
        measured = f"{row}, {variant}: {cell.sign}{figure(cell.summary.median)} {cell.unit}"
        holds = cell.summary.median >= value if is_least else cell.summary.median <= value
        # the router's own limit is somewhere above
        if cell.at_least and holds is not is_least:
            asked = f"asked was {comparison} {value:g}"
            raise self._unproven(f"{measured}: it did not fall behind at what was offered; {asked}")
        if not holds:
            raise self._failure(f"{measured}, expected {comparison} {value:g}")
        logger.info(measured)

    @keyword(tags=["studies"])
    def difference_should_be(
        self, row: str, variant: str, expected: Literal["more", "less", "not proven"], within: float | None = None
    ) -> None:
        """*variant* has proven *more* or *less* of *row* than its baseline, at 95 % for all variants, or *not proven*.

        That is no proof that they are equal: the message has the interval of the difference. *within*: what it may be
        at most, in per cent of the baseline's mean; if it may be more, it is ``INCONCLUSIVE:``, and so is *not proven*
        with values of fewer than three blocks. Examples:
        | Difference Should Be    one flow saturated    linux    less
        | Difference Should Be    64b saturated    flex parser    not proven    within=5
        """
        compared = self._compared(row, variant)
        measured = f"{row}, {variant}: {compared}"
        values = min(compared.comparison.reference.n, compared.comparison.candidate.n)
        direction = "more" if compared.comparison.difference > 0 else "less"
        if expected != (direction if compared.proven else "not proven"):
            raise self._failure(f"{measured}; expected {'no difference' if expected == 'not proven' else expected}")
        if expected == "not proven" and values < LEAST_VALUES:
            raise self._unproven(f"{measured}, of {values} values; at least {LEAST_VALUES} are needed")
        if within is not None and compared.most_percent > within:
            raise self._unproven(f"{measured}; it may be more than {within:g} %")
        add_to_test_message(narrow(measured))

    def _compared(self, row: str, variant: str) -> Compared:
        """Return the comparison of *variant* with its baseline. Raises Inconclusive without one."""
        cell = self._cell(row, variant)
        if cell.compared is None or cell.compared.limited:
            why = cell.compared or _why_no_value(cell) or "not compared: too few measurements"
            raise self._unproven(f"{row}, {variant}: {why}")
        return cell.compared

    @property
    def _results(self) -> StudyResults:
        if self._read is None:
            raise Inconclusive("INCONCLUSIVE: no study was run; the suite needs 'Suite Setup    Run Study    <name>'")
        return self._read

    def _cell(self, row: str, variant: str) -> StudyCell:
        results = self._results
        if (row, variant) not in results.cells:
            known = ", ".join(f"'{name}' of '{other}'" for name, other in results.cells)
            raise ConfigError(f"the study has no row '{row}' on variant '{variant}'; known: {known[:500]}")
        return results.cells[row, variant]

    def _failure(self, text: str) -> SlaFailure:
        return SlaFailure(f"FAIL: {'SIMULATED: ' * self._results.simulated}{text}")

    def _unproven(self, text: str) -> Inconclusive:
        return Inconclusive(f"INCONCLUSIVE: {'SIMULATED: ' * self._results.simulated}{text}")


def _why_no_value(cell: StudyCell) -> str:
    return " / ".join(dict.fromkeys(cell.gaps))


def _outside_words(cell: StudyCell) -> str:
    own, published = cell.summary, cell.published_summary
    shown = "not measured" if own is None else cell.sign + figure(own.median)
    expected = "" if published is None else f", published {figure(published.median)} ± {figure(cell.allowed)}"
    why = f" ({cell.explanation})" if cell.explanation else ""
    return f"{cell.row}, {cell.variant}: {shown}{expected} {cell.unit}{why}"
