"""The signature over a run's manifest: minisign agrees with us, and every changed byte is found."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from lineproof import __version__
from lineproof.commands.main import main
from lineproof.errors import ConfigError, TestbedError
from lineproof.evidence.signoff.signature import key_id, public_key, read_public_key, secret_key, sign
from lineproof.evidence.signoff.verification import verify
from support.resealed import change_records
from support.signoff_runs import PASSWORD, file_of, key_file, left_run

FIELDS = {"run": "a", "verdicts": "1 PASS", "who": "Zoë\n"}
COMMENT = f"lineproof:{__version__}\trun:a\tverdicts:1 PASS\twho:Zo\\xeb\\n"


def signed_run(folder: Path, password: str | None = None) -> tuple[Path, str]:
    run, (key, public) = left_run(folder / "results"), key_file(folder, password)
    with secret_key(key, lambda: password or "") as secret:
        content = sign(secret, (run / "manifest.json").read_bytes(), FIELDS)
    (run / "manifest.json.minisig").write_bytes(content)
    return run, public


def problems(run: Path, public: str | None) -> list[str]:
    return list(map(str, verify(run, public)[0].altered))


@pytest.mark.parametrize("password", [None, PASSWORD])
def test_a_signed_run_is_as_it_was_signed(tmp_path: Path, password: str | None):
    run, public = signed_run(tmp_path, password)
    found, signed = verify(run, public)
    assert found.altered == () and signed is not None and signed.checked
    assert signed.comment == COMMENT
    assert not verify(run)[1].checked and problems(run, None) == []


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


def test_a_run_that_was_sealed_again_is_not_the_signed_one(tmp_path: Path):
    run, public = signed_run(tmp_path)
    change_records(run / "requirements.jsonl", lambda records: records[0].update(message="PASS: of course"))
    assert problems(run, None) == []
    assert [words.partition(" over ")[0] for words in problems(run, public)] == [
        f"manifest.json.minisig is no signature of key {key_id(public)}"
    ]


def test_the_key_is_another_or_nobody_signed(tmp_path: Path):
    run, public = signed_run(tmp_path)
    _, other = key_file(tmp_path, name="other")
    (problem,) = problems(run, other)
    assert key_id(public) in problem and key_id(other) in problem
    (run / "manifest.json.minisig").unlink()
    assert problems(run, None) == []
    assert problems(run, public) == ["manifest.json.minisig is missing: nobody has signed this run"]


def test_the_command_checks_the_signature(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run, public = signed_run(tmp_path)
    file = str(file_of(tmp_path, "key.pub", ["untrusted comment: minisign public key", public]))
    elsewhere = shutil.move(run / "manifest.json.minisig", tmp_path / "of-the-buyer")
    for words, status, checked in (
        (["--public-key", file, "--signature", str(elsewhere)], 0, True),
        (["--signature", str(elsewhere)], 0, False),
        (["--public-key", public], 1, None),
    ):
        assert main(["verify", str(run), *words, "--json"]) == status
        signature = json.loads(capsys.readouterr().out)["runs"][0]["signature"]
        expected = {"key": key_id(public), "checked": checked, "comment": COMMENT}
        assert signature == (None if checked is None else expected)


@pytest.mark.parametrize("text", ["", "RW", "no such file", "RW" + "!" * 54, "\x00"])
def test_what_is_no_public_key_is_refused(tmp_path: Path, text: str):
    for words in (text, str(file_of(tmp_path, "key.pub", [text]))):
        with pytest.raises(ConfigError):
            read_public_key(words)


def test_what_is_no_secret_key_and_a_wrong_password_are_refused(tmp_path: Path):
    key, public = key_file(tmp_path, PASSWORD)
    with pytest.raises(ConfigError, match=r"key: cannot be decrypted: wrong password"):
        secret_key(key, lambda: "wrong")
    with secret_key(key, lambda: PASSWORD) as secret:
        assert public_key(secret) == public
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
