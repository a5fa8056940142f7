"""The pictures of a study, and the files of its forms."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import ConfigError
from ..evidence.document import SIMULATED, Figure, as_csv, as_markdown, as_page, as_text
from ..evidence.drawing import FAINT_COLOUR, GRID_COLOUR, LOST_COLOUR, SIMULATED_COLOUR, TEXT_COLOUR, THRESHOLD_COLOUR
from ..evidence.environment import code_digest
from ..evidence.integrity import Alteration
from ..evidence.plot_frame import (
    LABEL_SIZE,
    TICK_SIZE,
    TITLE_SIZE,
    WIDTH,
    PlotFrame,
    across,
    series_colour,
    ticks,
    value_share,
)
from ..evidence.resume import FINGERPRINTS
from ..evidence.run import read_run
from ..evidence.run_files import MEASUREMENTS, STUDY_FORMS, partial
from ..evidence.svg import SvgPicture, text_width
from ..evidence.verification import has_sum, seal_forms
from ..files import write_whole
from ..units import line_rate_pps
from .fitness import LINES, SenderFigures, senders_of
from .forms import COLUMNS, LINE_RATE, document, figure, size_words
from .history import read_results
from .preparing import CODE
from .results import StudyCell as Cell
from .results import StudyResults
from .study import AT_LEAST, Study


def drawn(found: StudyResults) -> dict[str, list[Figure]]:
    """Return the pictures of each row, and those of generators."""
    pictures = {row: pictures_of(found, row, cells) for row, cells in found.rows()}
    pictures[LINE_RATE] = sender_pictures(found, senders_of(found))
    return {part: [Figure(svg, title) for title, svg in each] for part, each in pictures.items()}


_BAR, _NAME = 26.0, 220.0
"""Pixels: of a variant's line, and of its name beside it."""

_LEAST_NAME = 90.0

_DASHES = "5 4"
"""Of published figures over the parameter, in the colour of what was measured."""

_SAMPLES = 100
"""Points of the linear reference, which is no straight line on a logarithmic axis."""


def pictures_of(found: StudyResults, row: str, cells: Sequence[Cell]) -> list[tuple[str, str]]:
    """The pictures of *row*, each with its title: bars, and a ramp or a curve over the parameter where it has one."""
    drawn = [(f"{row}: {cells[0].unit}", bars_picture(row, cells, found.simulated))] if _values(cells) else []
    if any(record.curve for record in found.records if record.row == row):
        drawn.insert(0, (f"{row}: received over offered", ramp_picture(found, row, cells)))
    if found.study.parameter is not None and len(_points(found, cells)) > 1:
        drawn.append((f"{row} over {found.study.parameter.name}", parameter_picture(found, row, cells)))
    return drawn


def _values(cells: Sequence[Cell]) -> list[float]:
    known = [value for cell in cells for value in (*cell.values, *cell.published)]
    return [value for value in known if math.isfinite(value)]


def bars_picture(row: str, cells: Sequence[Cell], simulated: bool) -> str:
    """For each variant a bar up to its median, a line from the least to the largest value, the published one beside."""
    left = 16 + min(_NAME, max(_LEAST_NAME, *(text_width(cell.variant, TICK_SIZE) for cell in cells)))
    right, top = WIDTH - 90, 58.0
    bottom = top + _BAR * len(cells)
    picture = SvgPicture(WIDTH, bottom + 62, row)
    picture.text(16, 26, f"{row} [{cells[0].unit}]", TITLE_SIZE, TEXT_COLOUR, bold=True)
    if simulated:
        picture.text(WIDTH - 8, 17, SIMULATED, TICK_SIZE, SIMULATED_COLOUR, anchor="end", bold=True)
    end = 1.06 * max([*_values(cells), 1e-9])

    def x(value: float) -> float:
        return left + (right - left) * max(0.0, value) / end

    for value, words in ticks(end):
        if value <= end:
            picture.line((x(value), top - 4), (x(value), bottom), GRID_COLOUR)
            picture.text(x(value), bottom + 16, words, TICK_SIZE, TEXT_COLOUR, anchor="middle")
    picture.line((left, top - 4), (left, bottom), FAINT_COLOUR)
    for place, cell in enumerate(cells):
        middle = top + _BAR * (place + 0.5)
        picture.text(left - 7, middle + 4.5, cell.variant, TICK_SIZE, TEXT_COLOUR, anchor="end")
        if (own := cell.summary) is None:
            picture.text(left + 7, middle + 4.5, "no value", LABEL_SIZE, LOST_COLOUR)
        else:
            least, median, most = size_words(cell, own)
            words = f"{cell.variant}: {least} to {most}, n {own.n}"
            with picture.tooltip(words):
                picture.rectangle(left, middle - 8, x(own.median) - left, 16, series_colour(0), 0.75)
                picture.line((x(own.minimum), middle), (x(own.maximum), middle), TEXT_COLOUR, 1.6)
                for value in (own.minimum, own.maximum):
                    picture.line((x(value), middle - 5), (x(value), middle + 5), TEXT_COLOUR, 1.6)
            farthest = max([own.maximum, *cell.published])
            picture.text(x(farthest) + 9, middle + 4.5, median, LABEL_SIZE, TEXT_COLOUR)
        if (published := cell.published_summary) is not None:
            picture.line((x(published.minimum), middle), (x(published.maximum), middle), THRESHOLD_COLOUR, 1.6)
            picture.mark(x(published.median), middle, 1, THRESHOLD_COLOUR)
    _bars_legend(picture, left, bottom + 42, any(cell.published for cell in cells))
    return picture.svg()


def _bars_legend(picture: SvgPicture, x: float, y: float, published: bool) -> None:
    picture.rectangle(x, y - 10, 20, 11, series_colour(0), 0.75)
    picture.text(x + 26, y, "median, and from the least to the largest value", LABEL_SIZE, TEXT_COLOUR)
    if published:
        picture.mark(x + 362, y - 4.5, 1, THRESHOLD_COLOUR)
        picture.text(x + 376, y, "published (median, from least to largest)", LABEL_SIZE, TEXT_COLOUR)


def ramp_picture(found: StudyResults, row: str, cells: Sequence[Cell]) -> str:
    """What each variant sent on, over what it was offered, in its first ramp; the mark is where it falls behind."""
    curves = {record.variant: record for record in reversed(found.records) if record.row == row and record.curve}
    unit = cells[0].unit
    end = 1.04 * max(offered for record in curves.values() for offered, _ in record.curve)
    frame = PlotFrame(f"{row}: received over offered, both in {unit}", found.simulated)
    place = frame.axes(end, end, f"offered [{unit}]", f"received [{unit}]")
    frame.limit(place(0, 0), place(end / 1.04, end / 1.04), "all that is offered")
    for series, cell in enumerate(cell for cell in cells if cell.variant in curves):
        record = curves[cell.variant]
        points = [place(*point) for point in record.curve]
        falls = "does not fall behind up to" if record.figures.get(AT_LEAST) else "falls behind at"
        words = cell.variant if record.value is None else f"{cell.variant}: {falls} {figure(record.value)}"
        frame.curve(points, series, words)
    return frame.finished()


def _points(found: StudyResults, cells: Sequence[Cell]) -> list[tuple[float, Cell]]:
    """The cells that have a place on the parameter's axis, and a value, in its order."""
    places = [(found.study.variants[cell.variant].value, cell) for cell in cells if cell.values]
    return sorted(((value, cell) for value, cell in places if value is not None), key=lambda item: item[0])


def _lines(study: Study, points: Sequence[tuple[float, Cell]]) -> dict[str, list[tuple[float, Cell]]]:
    """The points of each line by its baseline: variants that are compared with the same one, and that one itself.

    A variant that is compared with nothing is on the line "" with others of its kind.
    """
    lines: dict[str, list[tuple[float, Cell]]] = {}
    for value, cell in points:
        own = cell.variant if cell.variant in study.baselines else ""
        lines.setdefault(study.baseline_of(cell.variant) or own, []).append((value, cell))
    return lines


def parameter_picture(found: StudyResults, row: str, cells: Sequence[Cell]) -> str:
    """The medians over the parameter, from least to largest, with the published ones and the linear reference.

    There is a line for each baseline, so that several routers in one study are not joined to one.
    """
    parameter, points = found.study.parameter, _points(found, cells)
    if parameter is None or not points:
        raise ValueError("a curve needs a parameter and values of it")
    unit = cells[0].unit
    lines = _lines(found.study, points)
    y_end = 1.1 * max([*_values([cell for _, cell in points]), 1e-9])
    values = [value for value, _ in points]
    logarithmic = parameter.axis == "log"
    share = value_share(values, logarithmic)
    frame = PlotFrame(f"{row} over {parameter.name}", found.simulated)
    name = f"{parameter.name}{f' [{parameter.unit}]' if parameter.unit else ''}"
    shown = ((value / y_end, words) for value, words in ticks(y_end))
    frame.scale(shown, unit, f"{name}{', logarithmic' if logarithmic else ''}")
    for value in sorted(set(values)):
        frame.mark_below(share(value), f"{value:g}")

    def place(value: float, figure: float) -> tuple[float, float]:
        return across(share(value)), frame.y(min(1.0, figure / y_end))

    for series, (name, line) in enumerate(lines.items()):
        colour = series_colour(series)
        if parameter.reference == "linear":
            level = [place(value, level) for value, level in _linear(line) if level <= y_end]
            frame.picture.path(level, FAINT_COLOUR, 1.4)
        known = [(value, cell.published_summary) for value, cell in line]
        published = [place(value, figures.median) for value, figures in known if figures is not None]
        if len(published) > 1:
            frame.picture.path(published, colour, 1.4, _DASHES)
        middle = [place(value, cell.summary.median) for value, cell in line if cell.summary]
        frame.curve(middle, series, name if len(lines) > 1 and name else "measured")
        for value, cell in line:
            (x, low), (_, high) = place(value, min(cell.values)), place(value, max(cell.values))
            frame.upright(x, low, high, colour)
            if cell.at_least:
                frame.picture.text(x, high - 8, "≥", LABEL_SIZE, colour, anchor="middle")
    if any(cell.published for _, cell in points):
        frame.line_sign("published", TEXT_COLOUR, 1.4, _DASHES)
    if parameter.reference == "linear":
        frame.line_sign("linear with the parameter", FAINT_COLOUR, 1.4)
    return frame.finished()


def _linear(points: Sequence[tuple[float, Cell]]) -> list[tuple[float, float]]:
    """A figure that grows in proportion to the parameter, from the smallest value above 0; many points."""
    known = [(value, cell.summary.median) for value, cell in points if value > 0 and cell.summary is not None]
    if not known:
        return []
    (first, level), (last, _) = known[0], known[-1]
    places = [first * (last / first) ** (number / _SAMPLES) for number in range(_SAMPLES + 1)]
    return [(value, level * value / first) for value in places]


def sender_pictures(found: StudyResults, senders: Sequence[SenderFigures]) -> list[tuple[str, str]]:
    """What each generator sends over the size of its frames, and what CPU time that takes, each with its title."""
    rates = [(sender.variant, sender.frame, sender.offered / 1e3) for sender in senders]
    way = " each way" if any(sender.directions > 1 for sender in senders) else ""
    costs = [(sender.variant, sender.frame, sender.cpu) for sender in senders if sender.cpu is not None]
    drawn = [
        ("Frames/s over frame size", f"kframes/s{way}", rates),
        ("CPU over frame size", "CPU s per million frames", costs),
    ]
    return [
        (title, _over_sizes(title, unit, points, found.simulated, lines=points is rates))
        for title, unit, points in drawn
        if len({size for _, size, _ in points}) > 1
    ]


def _over_sizes(
    title: str, unit: str, points: Sequence[tuple[str, float, float]], simulated: bool, *, lines: bool
) -> str:
    """A curve for each variant of *points* (variant, size, figure). *lines*: with the rates that fill each line."""
    frame = PlotFrame(title, simulated)
    x_end, y_end = 1.05 * max(size for _, size, _ in points), 1.1 * max(max(level for *_, level in points), 1e-9)
    place = frame.axes(x_end, y_end, "frame size [bytes with FCS]", unit)
    sizes = [64 + (x_end / 1.05 - 64) * number / _SAMPLES for number in range(_SAMPLES + 1)]
    for name, link in LINES.items() if lines else ():
        rate = [(size, line_rate_pps(link, size) / 1e3) for size in sizes]
        if seen := [place(*point) for point in rate if point[1] <= y_end]:
            frame.picture.path(seen, FAINT_COLOUR, 1.4)
            frame.picture.text(seen[-1][0], seen[-1][1] - 6, name, LABEL_SIZE, FAINT_COLOUR, anchor="end")
    for series, variant in enumerate(dict.fromkeys(variant for variant, *_ in points)):
        own = sorted((size, level) for name, size, level in points if name == variant)
        frame.curve([place(*point) for point in own], series, variant)
    return frame.finished()


def page(found: StudyResults) -> str:
    """Return the results as a page with their pictures."""
    return as_page(document(found, drawn(found)))


def forms_of(found: StudyResults) -> dict[str, str]:
    """Return each file of a run's folder and what is in it."""
    shown = document(found)
    return dict(
        zip(STUDY_FORMS, (as_text(shown, COLUMNS), page(found), as_csv(shown), as_markdown(shown)), strict=True)
    )


def write_results(found: StudyResults) -> Path:
    """Write every form into the run's folder, and their sums; returns the page. Raises TestbedError."""
    for name, form in forms_of(found).items():
        write_whole(found.folder / name, form, fresh=partial(found.folder / name))
    seal_forms(found.folder)
    return found.folder / "study.html"


_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)")

LARGEST_FORM = 64 * 2**20
"""Bytes. The page of a study of 100 blocks has less than one of these MB."""


def check_forms(folder: Path) -> tuple[tuple[Alteration, ...], tuple[str, ...]]:
    """Make each form in *folder* again from the records: which are not what these come to, and notes.

    The records must be as the run left them. Another Lineproof may write other words: what it made and nobody changed
    since, by its sums, is a note. Raises ConfigError if a form cannot be read.
    """
    present = [name for name in STUDY_FORMS if (folder / name).is_symlink() or (folder / name).exists()]
    if not present:
        return (), ()
    if not (folder / MEASUREMENTS).is_file():
        return tuple(Alteration(name, "was added: the run is no study's") for name in present), ()
    try:
        found, environment = read_results(folder), read_run(folder).environment
    except ConfigError as error:
        return (), (f"{' and '.join(present)}: not compared with the records: {error}",)
    differing = tuple(_differing(found, present))
    known = environment.extra.get(FINGERPRINTS) if environment else None
    made_by = known.get(CODE) if isinstance(known, dict) else None
    if made_by == code_digest():
        return differing, ()
    # a Lineproof that says which it was has also left sums, by which what somebody else changed is known
    wrong = tuple(item for item in differing if made_by is not None and not has_sum(folder, item.file))
    others = (f"{item}; another Lineproof made the run, with other words" for item in differing if item not in wrong)
    return wrong, tuple(others)


def _differing(found: StudyResults, names: list[str]) -> Iterator[Alteration]:
    forms = forms_of(found)
    for name in names:
        path = found.folder / name
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_FORM:
            yield Alteration(name, "is no file that a study's run leaves")
            continue
        try:
            kept = path.read_bytes().decode(errors="replace")
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror}", path) from None
        if not _same(kept, forms[name]):
            yield Alteration(
                name, f"is not what the records come to; 'lineproof study report {found.folder.name}' makes it again"
            )


def _same(one: str, other: str) -> bool:
    """Return whether two forms say the same; numbers may differ by what two versions of a library round differently."""
    if one == other:
        return True
    ours, theirs = _NUMBER.split(one), _NUMBER.split(other)
    return len(ours) == len(theirs) and all(
        mine == yours or (place % 2 == 1 and math.isclose(float(mine), float(yours), rel_tol=1e-9))
        for place, (mine, yours) in enumerate(zip(ours, theirs, strict=True))
    )
