"""The exceptions that reach a person, and whose fault each one is.

A router that fails a sentence raises :class:`SlaFailure`, an ``AssertionError``. All others are the testbed's or the
user's fault, never the router's (the verdict rule of ``docs/methodology.md``).
"""

from __future__ import annotations

import errno
import os
import struct
import traceback
from collections.abc import Iterable
from pathlib import Path

from .visible import shortened, visible, visible_data


class LineproofError(Exception):
    """Base of every error that is not the router's fault. Its text is one paragraph that ends with the fix."""

    ROBOT_SUPPRESS_NAME = True

    def __init__(self, *parts: object) -> None:
        super().__init__(*map(visible_data, parts))


class ConfigError(LineproofError):
    """A file or an argument is wrong: names file, line and key, and what is expected.

    ``others``: what else is wrong with the same file, for ``lineproof check``.
    """

    def __init__(self, message: str, path: Path | str | None = None, line: int | None = None) -> None:
        self.path, self.line, self.others = path, line, tuple[ConfigError, ...]()
        where = "" if path is None else f"{path}:{line}: " if line else f"{path}: "
        super().__init__(where + message)

    @classmethod
    def first_of(cls, problems: Iterable[ConfigError]) -> ConfigError:
        """Return the first of *problems* of a file, with the others."""
        first, *others = problems
        first.others = tuple(others)
        return first


class SentenceError(LineproofError):
    """An SLA sentence that cannot be parsed, or cannot be true on these ports."""


class TestbedError(LineproofError):
    """The testbed does not work: no server, port in use, wrong key, unknown host key, a process that died."""


class Inconclusive(LineproofError):
    """The third verdict: the testbed could prove neither that the router passes nor that it fails."""


class SlaFailure(AssertionError):
    """The router failed the sentence."""

    ROBOT_SUPPRESS_NAME = True

    def __init__(self, *parts: object) -> None:
        super().__init__(*map(visible_data, parts))


BREAKDOWN_ERRORS = (
    *(LineproofError, OSError, LookupError, ValueError, TypeError, ArithmeticError, RuntimeError),
    *(AttributeError, EOFError, MemoryError, struct.error),
)
"""The errors that a broken testbed may raise. Not Exception, because Robot stops a run by an exception of its own."""

_FIXES = {
    errno.ENOSPC: "free space on that disk",
    errno.EDQUOT: "free space: this user's quota is used up",
    errno.EFBIG: "raise the limit of a file's size ('ulimit -f')",
    errno.EROFS: "make that disk writable",
    errno.EACCES: "give this user the right to use it",
    errno.EPERM: "give this user the right to use it",
    errno.EMFILE: "raise the limit of open files ('ulimit -n')",
    errno.ENFILE: "end other programs: this machine's limit of open files is reached",
    errno.EAGAIN: "raise the limit of processes ('ulimit -u')",
    errno.ENOMEM: "give this machine more memory",
}
"""The remedy for an error of the operating system, where the error alone says it."""

_FULL = (errno.ENOSPC, errno.EDQUOT)


def system_words(error: OSError, path: Path | str | None = None, instead: str = "") -> str:
    """Return *error* of the operating system: ``PATH: No space left on device (0 bytes are free there); free space …``.

    *path*: in place of the one that the error names. *instead*: another way out, as ``set TMPDIR to another folder``.
    """
    names = [str(path)] if path is not None else [os.fsdecode(name) for name in _names(error)]
    reason = error.strerror or (str(error) if error.errno is None else os.strerror(error.errno))
    room = f" ({_free(names[0])})" if error.errno in _FULL and names else ""
    fixes = [fix for fix in (_FIXES.get(error.errno or 0, ""), instead) if fix]
    return f"{' to '.join(names)}{': ' if names else ''}{reason}{room}{'; ' if fixes else ''}{', or '.join(fixes)}"


def _names(error: OSError) -> list[str | bytes]:
    return [name for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]


def _free(path: str) -> str:
    """Return the space left where *path* is or would be, in words."""
    for folder in (path, *map(str, Path(path).parents)):
        try:
            status = os.statvfs(folder)
        except OSError:
            continue
        left = status.f_bavail * status.f_frsize
        return f"{left} bytes are free there" if left < 10_000 else f"{left / 1e6:.2f} MB are free there"
    return "how much is free there is not known"


def in_words(error: BaseException) -> str:
    """Return any *error* as one paragraph for a person: an own one's text, else what was wrong, where, and what to do.

    What nobody foresaw names its place in Lineproof's code instead of a traceback.
    """
    if isinstance(error, LineproofError | SlaFailure):
        return str(error)
    if isinstance(error, OSError) and (error.errno is not None or error.strerror or error.filename):
        return visible(system_words(error))
    place = f" ({where})" if (where := _place(error)) else ""
    if isinstance(error, MemoryError):
        return f"there is not enough memory for this{place}; expected a smaller file, or a machine with more memory"
    if isinstance(error, RecursionError):
        return f"what was read is nested too deeply{place}; expected a file as Lineproof or its guides write it"
    text = shortened(" ".join(str(error).split()), _LONGEST)
    if isinstance(error, ValueError) and _is_own(error):
        return text
    if isinstance(error, KeyError):
        text = f"there is no {text}"
    return f"an error of Lineproof's own{place}: {text or 'without a reason'}; report it to us with what you ran"


_LONGEST = 300
"""Characters that are kept of the text of a foreign error."""


def _is_own(error: BaseException) -> bool:
    """Return whether Lineproof's own code raised it, with a sentence of its own, and not Python or another library."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and bool(_own(frames[-1].filename)) and (frames[-1].line or "").startswith("raise ")


def _place(error: BaseException) -> str:
    """Return the last line of Lineproof's code that *error* passed through."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return next((f"{own}, line {frame.lineno}" for frame in frames if (own := _own(frame.filename))), "")


def _own(file: str) -> str:
    """Return *file* from its package on; "" of code that is not Lineproof's, whatever its folder is called."""
    inside = file.removeprefix(f"{_HOME}/")
    return inside if inside.startswith(("lineproof/", "lineproof_bench/")) else ""


_HOME = Path(__file__).parents[1]
