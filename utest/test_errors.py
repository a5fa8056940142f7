"""Any error becomes one paragraph for a person, and a file is written whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import resource
from pathlib import Path
from unittest.mock import Mock

import pytest

from lineproof.errors import ConfigError, TestbedError, in_words
from lineproof.files import append_line, read_file, write_whole

RAW = re.compile(r"Traceback|\[Errno|\b[A-Z][a-z]+[A-Za-z]*(Error|Exception)\b|\n")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/x/y"), "/x/y: No space left on device"),
        (OSError(errno.ENOSPC, "No space left on device"), "free space on that disk"),
        (OSError(errno.EMFILE, "Too many open files"), "'ulimit -n'"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "'ulimit -u'"),
        (OSError("a reason alone"), "a reason alone"),
        (KeyError("data"), "there is no 'data'"),
        (MemoryError(), "not enough memory"),
        (RecursionError("maximum recursion depth exceeded"), "nested too deeply"),
        (AssertionError(), "without a reason"),
        (ZeroDivisionError("a\nb" * 1000), "report it"),
    ],
)
def test_an_error_is_one_paragraph_with_what_to_do(error: Exception, says: str) -> None:
    found = in_words(error)
    assert says in found
    assert not RAW.search(found)
    assert len(found) < 600


def test_a_sentence_of_our_own_stays_as_it_is() -> None:
    from lineproof.core.trial import Load

    with pytest.raises(ValueError, match="positive number") as caught:
        Load(-1)
    assert in_words(caught.value) == str(caught.value)


@pytest.mark.parametrize("step", ["os.fsync", "os.open", "Path.replace"])
def test_a_file_is_written_whole_or_not_at_all(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / ("n" * 250)  # as long as a name can be
    write_whole(path, "before", mode=0o600)
    with monkeypatch.context() as patch:
        full = Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        patch.setattr(f"lineproof.files.{step}", full)
        with pytest.raises(TestbedError) as caught:
            write_whole(path, "after", "set TMPDIR to another folder")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    assert re.fullmatch(
        rf"{path} cannot be written: No space left on device \(.* free there\); free space on that disk, or set TMPDIR"
        " to another folder",
        str(caught.value),
    )
    write_whole(path, "after")
    assert path.read_text() == "after"


def test_a_limit_of_the_size_of_files_leaves_whole_lines(tmp_path: Path) -> None:
    path, before = tmp_path / "lines", resource.getrlimit(resource.RLIMIT_FSIZE)
    append_line(path, b"first\n")
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
    try:
        with pytest.raises(TestbedError, match=r"lines cannot be written: File too large; .*ulimit -f"):
            append_line(path, b"second" * 10 + b"\n")
        with pytest.raises(TestbedError, match="File too large"):
            write_whole(path, "third" * 10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == b"first\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ".", "missing"):
        with pytest.raises(ConfigError, match=str(tmp_path)):
            read_file(tmp_path / name)
