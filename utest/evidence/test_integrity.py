"""Whatever was altered, added or removed in a run's folder is found; what a crash leaves is not taken for it."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lineproof import __version__
from lineproof.commands.main import main
from lineproof.errors import ConfigError, TestbedError
from lineproof.evidence.run import read_run
from lineproof.evidence.run_files import (
    MANIFEST_FILE,
    RECORDS,
    check_integrity,
    sealed,
    sum_of_records,
    sums_of,
)
from lineproof.evidence.signoff.signature import key_id, public_key, read_public_key, secret_key, sign, verify
from support.evidence_builders import RUN, change_records, rows, write_rows, written
from support.signoff_runs import PASSWORD, file_of, key_file, left_run

TRIES = int(os.environ.get("LINEPROOF_ALTERATIONS", "200"))
"""How many alterations are tried, of each kind."""


@pytest.fixture(scope="module", params=[True, False], ids=["closed", "unclosed"])
def left(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody altered, closed or not."""
    return written(tmp_path_factory.mktemp("left"), closed=request.param)


@pytest.fixture
def run(left: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(left, tmp_path / left.name))


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    return written(tmp_path / "closed")


def altered(run: Path) -> list[str]:
    return [str(item) for item in check_integrity(run).altered]


def alter_a_byte(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content)) if content else 0
    kind = chance.choice(("change", "add", "remove")) if content else "add"
    if kind == "change":
        return content[:place] + bytes([content[place] ^ (1 << chance.randrange(8))]) + content[place + 1 :]
    if kind == "add":
        return content[:place] + bytes([chance.randrange(256)]) + content[place:]
    return content[:place] + content[place + 1 :]


def test_what_a_run_left_is_as_it_left_it(left: Path):
    found, _ = verify(left)
    is_closed = (left / MANIFEST_FILE).exists()
    assert found.notes == (() if is_closed else ("manifest.json is missing: the run was never closed",))
    assert found.altered == () and len(read_run(left).trials) == 6


@pytest.mark.parametrize("seed", range(4))
def test_every_altered_byte_is_found(run: Path, seed: int):
    """But for bytes cut off at the end of an unclosed run's file of records: that is what a crash does."""
    chance, is_closed = random.Random(seed), (run / MANIFEST_FILE).exists()
    for _ in range(TRIES // 4):
        path = chance.choice(sorted(run.iterdir()))
        before = path.read_bytes()
        after = alter_a_byte(before, chance)
        # without its newline, or with more after it, the last line is an incomplete one
        torn = path.name in RECORDS and len(after) - len(before) <= 1 and after[: len(before) - 1] == before[:-1]
        # one of two equal bytes was removed and is there still
        if after == before or (torn and not is_closed):
            continue
        path.write_bytes(after)
        assert any(path.name in item for item in altered(run)) or (altered(run) and not is_closed), (path, after)
        with pytest.raises(ConfigError):
            read_run(run)
        path.write_bytes(before)
    assert altered(run) == []


def test_every_removed_and_added_file_is_found(run: Path):
    for path in sorted(run.iterdir()):
        content = path.read_bytes()
        path.unlink()
        assert any(item.startswith(path.name) for item in altered(run)), path
        path.write_bytes(content)
    for name in ("new.txt", ".hidden", ".trials.jsonl.part"):
        (run / name).write_text("")
        assert altered(run) == [f"{name} was added"]
        (run / name).unlink()
    (run / "inputs").mkdir()
    assert altered(run) == ["inputs was added"]


def seal_one_line(line: bytes) -> bytes:
    row = json.loads(line)
    previous, _ = row.pop("previous"), row.pop("sha256")
    return sealed(row | {"verdict": "PASS"}, previous)[0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda a, b, c: [a, b.replace(b'"FAIL"', b'"PASS"'), c], "2 was changed (bytes "),
        (lambda a, b, c: [a, c], "2 does not follow line 1: lines were removed, added or moved here"),
        (lambda a, b, c: [b, c], "1 does not follow the beginning of this run"),
        (lambda a, b, c: [a, b, b, c], "3 does not follow line 2"),
        (lambda a, b, c: [b, a, c], "1 does not follow the beginning of this run"),
        (lambda a, b, c: [a, seal_one_line(b), c], "3 does not follow line 2"),
    ],
    ids=["changed", "removed", "first removed", "doubled", "swapped", "sealed again"],
)
def test_an_altered_line_is_named(run: Path, change, says: str):
    path = run / "requirements.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(change(*lines)))
    first, *more = altered(run)
    assert first.startswith(f"requirements.jsonl:{says}")
    assert all(item.startswith("requirements.jsonl:") for item in more), "the file is not named again as a whole"
    with pytest.raises(ConfigError, match=r"requirements\.jsonl:\d: .*; what was altered proves nothing"):
        read_run(run)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to(path.parent.parent / "elsewhere")])
@pytest.mark.parametrize("name", ["trials.jsonl", "environment.json", "manifest.json"])
def test_links_and_pipes_are_refused_and_not_opened(closed: Path, name: str, make: Any):
    shutil.move(closed / name, closed.parent / "elsewhere")
    make(closed / name)
    assert f"{name} is no regular file; the files of a run are neither links nor devices" in altered(closed)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "../" + RUN + "/trials.jsonl"])
def test_a_manifest_opens_no_other_files(closed: Path, name: str):
    (data,) = rows(closed / MANIFEST_FILE)
    data["files"][name] = "0" * 64
    write_rows(closed / MANIFEST_FILE, [data], RUN)
    assert altered(closed) == [f"{name} is missing"]


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"files": 3}', b'{"files": {"a": ' + b"[" * 100_000, b"\xff"], ids=range(5)
)
def test_what_is_no_manifest_is_an_alteration(closed: Path, content: bytes):
    (closed / MANIFEST_FILE).write_bytes(content)
    assert altered(closed) == ["manifest.json was changed: it is no manifest of a run"]


@pytest.mark.slow
def test_the_sum_of_the_records_is_what_sha256sum_prints(closed: Path):
    command = "sha256sum environment.json *.jsonl | sha256sum"
    printed = subprocess.run(command, shell=True, cwd=closed, capture_output=True, text=True, check=True)
    assert printed.stdout.split()[0] == check_integrity(closed).sum_of_records == sum_of_records(sums_of(closed))


def test_names_that_a_terminal_would_obey_are_shown_as_text(closed: Path):
    (closed / "\x1b[2Jall is well").write_text("")
    (closed / os.fsdecode(b"\xff")).write_text("")
    assert altered(closed) == ["'\\x1b[2Jall is well' was added", "'\\udcff' was added"]
    assert main(["verify", str(closed), "--json"]) == 1


def test_a_run_that_is_named_twice_is_checked_once(closed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(closed), f"{closed}/../{closed.name}", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 1


def test_a_record_that_does_not_fit_its_schema_is_named(closed: Path):
    """Somebody sealed it again, with a verdict that there is none of."""
    change_records(closed / "requirements.jsonl", lambda rows: rows[2].update(verdict="PERHAPS"))
    (problem,) = verify(closed)[0].altered
    assert str(problem).startswith("requirements.jsonl:3 does not fit the schema lineproof.requirement/5: verdict: ")


FIELDS = {"run": "a", "verdicts": "1 PASS", "who": "Zoë\n"}
COMMENT = f"lineproof:{__version__}\trun:a\tverdicts:1 PASS\twho:Zo\\xeb\\n"


def signed_run(folder: Path) -> tuple[Path, str]:
    run, (key, public) = left_run(folder / "results"), key_file(folder)
    with secret_key(key, str) as secret:
        content = sign(secret, (run / "manifest.json").read_bytes(), FIELDS)
    (run / "manifest.json.minisig").write_bytes(content)
    return run, public


def problems(run: Path, public: str | None) -> list[str]:
    return list(map(str, verify(run, public)[0].altered))


def test_every_byte_of_the_signature_counts(tmp_path: Path):
    run, public = signed_run(tmp_path)
    path, chance = run / "manifest.json.minisig", random.Random(1)
    content = path.read_bytes()
    changed = [bytearray(content) for _ in content]
    for at, whole in enumerate(changed):
        whole[at] ^= 1 << chance.randrange(8)
    for other in (*changed, content + b"\n", content[:-1], b"", content.replace(b"\n", b"\r\n"), b"x" * 99_999):
        path.write_bytes(bytes(other))
        assert any("manifest.json.minisig" in problem for problem in problems(run, public)), bytes(other)


def test_another_key_and_a_run_that_was_sealed_again_are_not_the_signed_ones(tmp_path: Path):
    run, public = signed_run(tmp_path)
    _, other = key_file(tmp_path, name="other")
    (problem,) = problems(run, other)
    assert key_id(public) in problem and key_id(other) in problem
    change_records(run / "requirements.jsonl", lambda records: records[0].update(message="PASS: of course"))
    (problem,) = problems(run, public)
    assert problem.startswith(f"manifest.json.minisig is no signature of key {key_id(public)} over ")
    (run / "manifest.json.minisig").unlink()
    assert problems(run, None) == []
    assert problems(run, public) == ["manifest.json.minisig is missing: nobody has signed this run"]


@pytest.mark.parametrize("text", ["", "RW", "no such file", "RW" + "!" * 54, "\x00"])
def test_what_is_no_public_key_is_refused(tmp_path: Path, text: str):
    for words in (text, str(file_of(tmp_path, "key.pub", [text]))):
        with pytest.raises(ConfigError):
            read_public_key(words)


def test_what_is_no_secret_key_and_a_wrong_password_are_refused(tmp_path: Path):
    key, public = key_file(tmp_path, PASSWORD)
    with pytest.raises(ConfigError, match=r"key: cannot be decrypted: wrong password"):
        secret_key(key, lambda: "wrong")
    for content in (b"", public.encode(), key.read_bytes()[:-9], b"x" * 99_999):
        key.write_bytes(content)
        with pytest.raises(ConfigError):
            secret_key(key, lambda: PASSWORD)


def test_without_the_library_a_run_is_checked_but_for_its_signature(tmp_path: Path, monkeypatch):
    run, public = signed_run(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "minisign", None)
    found, _ = verify(run)
    assert found.altered == () and "pip install 'lineproof[signoff]" in found.notes[-1]
    with pytest.raises(TestbedError, match=r"lineproof\[signoff\]"):
        verify(run, public)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("minisign") is None, reason="needs Debian's package minisign")
def test_minisign_checks_our_signature_and_we_check_its(tmp_path: Path):
    def minisign(*words: str) -> str:
        done = subprocess.run(["minisign", *words], cwd=tmp_path, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout

    minisign("-G", "-W", "-p", "its.pub", "-s", "its.key")
    run, public = left_run(tmp_path / "results"), read_public_key(str(tmp_path / "its.pub"))
    manifest = run / "manifest.json"
    with secret_key(tmp_path / "its.key", str) as secret:
        assert public_key(secret) == public
        Path(f"{manifest}.minisig").write_bytes(sign(secret, manifest.read_bytes(), FIELDS))
    assert COMMENT in minisign("-V", "-m", str(manifest), "-p", "its.pub")
    # minisign writes no leading zeros
    assert key_id(public).lstrip("0") in (tmp_path / "its.pub").read_text()
    for words in ([], ["-t", "signed by hand"]):
        minisign("-S", "-m", str(manifest), "-s", "its.key", *words)
        found, signed = verify(run, public)
        assert found.altered == () and signed.checked
