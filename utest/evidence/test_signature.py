"""The signature over a run's manifest: minisign agrees with us, and every changed byte is found."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lineproof import __version__
from lineproof.commands.main import main
from lineproof.errors import ConfigError, TestbedError
from lineproof.evidence.signature import PublicKey, read_public_key, secret_key, sign
from lineproof.evidence.verification import verify
from support.resealed import change_records
from support.signoff_runs import PASSWORD, file_of, key_file, left_run

FIELDS = {"run": "a", "verdicts": "1 PASS", "who": "Zoë\n"}
COMMENT = f"lineproof:{__version__}\trun:a\tverdicts:1 PASS\twho:Zo\\xeb\\n"
needs_minisign = pytest.mark.skipif(shutil.which("minisign") is None, reason="needs Debian's package minisign")


def signed_run(folder: Path, password: str | None = None) -> tuple[Path, str]:
    run, (key, public) = left_run(folder / "results"), key_file(folder, password)
    with secret_key(key, lambda: password or "") as secret:
        content = sign(secret, (run / "manifest.json").read_bytes(), FIELDS)
    (run / "manifest.json.minisig").write_bytes(content)
    return run, public


def problems(run: Path, public: str | None) -> list[str]:
    return [str(item) for item in verify(run, None if public is None else read_public_key(public))[0].altered]


@pytest.mark.parametrize("password", [None, PASSWORD])
def test_a_signed_run_is_as_it_was_signed(tmp_path: Path, password: str | None):
    run, public = signed_run(tmp_path, password)
    found, signed = verify(run, read_public_key(public))
    assert found.altered == () and signed is not None and signed.checked
    assert signed.comment == COMMENT
    assert not verify(run)[1].checked and problems(run, None) == []


def test_every_byte_of_the_signature_counts(tmp_path: Path):
    run, public = signed_run(tmp_path)
    path, chance = run / "manifest.json.minisig", random.Random(1)
    content = path.read_bytes()
    for at in range(len(content)):
        changed = bytearray(content)
        changed[at] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        assert any("manifest.json.minisig" in item for item in problems(run, public)), bytes(changed)
    for other in (content + b"\n", content[:-1], b"", content.replace(b"\n", b"\r\n"), b"x" * 99_999):
        path.write_bytes(other)
        assert any("manifest.json.minisig" in item for item in problems(run, public))


def test_a_run_that_was_sealed_again_is_not_the_signed_one(tmp_path: Path):
    run, public = signed_run(tmp_path)
    change_records(run / "requirements.jsonl", lambda rows: rows[0].update(message="PASS: of course"))
    assert problems(run, None) == []
    (found,) = problems(run, public)
    assert re.fullmatch(r"manifest\.json\.minisig is no signature of key \w{16} over manifest\.json: one of .*", found)


def test_the_key_is_another_or_nobody_signed(tmp_path: Path):
    run, public = signed_run(tmp_path)
    _, other = key_file(tmp_path, name="other")
    (found,) = problems(run, other)
    assert read_public_key(public).id in found and read_public_key(other).id in found
    (run / "manifest.json.minisig").unlink()
    assert problems(run, None) == []
    assert problems(run, public) == ["manifest.json.minisig is missing: nobody has signed this run"]
    (run / "manifest.json.minisig").symlink_to(tmp_path / "key")
    assert problems(run, None) == ["manifest.json.minisig is no regular file"]


def test_the_command_checks_the_signature(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run, public = signed_run(tmp_path)
    file = file_of(tmp_path, "key.pub", ["untrusted comment: minisign public key", public])
    elsewhere = shutil.move(run / "manifest.json.minisig", tmp_path / "of-the-buyer")
    assert main(["verify", str(run), "--public-key", str(file), "--signature", str(elsewhere)]) == 0
    assert f"signature of key {read_public_key(public).id}: good" in capsys.readouterr().out
    assert main(["verify", str(run), "--public-key", public, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["runs"][0]["signature"] is None
    assert main(["verify", str(run), "--signature", str(elsewhere), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["runs"][0]["signature"]
    assert found == {"key": read_public_key(public).id, "checked": False, "comment": COMMENT}


@pytest.mark.parametrize("text", ["", "RW", "no such file", "RW" + "!" * 54, "\x00"])
def test_what_is_no_public_key_is_refused(tmp_path: Path, text: str):
    with pytest.raises(ConfigError):
        read_public_key(text)
    (tmp_path / "key.pub").write_text(text)
    with pytest.raises(ConfigError, match="is no public key of minisign"):
        read_public_key(str(tmp_path / "key.pub"))


def test_what_is_no_secret_key_and_a_wrong_password_are_refused(tmp_path: Path):
    key, public = key_file(tmp_path, PASSWORD)
    with (
        pytest.raises(ConfigError, match=r"key: cannot be decrypted: wrong password"),
        secret_key(key, lambda: "wrong"),
    ):
        pass
    with secret_key(key, lambda: PASSWORD) as secret:
        assert PublicKey.of(secret).text == public
    for content in (b"", public.encode(), key.read_bytes()[:-9], b"x" * 9999):
        key.write_bytes(content)
        with pytest.raises(ConfigError), secret_key(key, lambda: PASSWORD):
            pass


def test_without_the_library_a_run_is_checked_but_for_its_signature(tmp_path: Path, monkeypatch):
    run, public = signed_run(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "minisign", None)
    found, _ = verify(run)
    assert found.altered == () and "pip install 'lineproof[signoff]" in found.notes[-1]
    with pytest.raises(TestbedError, match=r"lineproof\[signoff\]"):
        verify(run, read_public_key(public))


@needs_minisign
@pytest.mark.slow
def test_minisign_checks_our_signature_and_we_check_its(tmp_path: Path):
    def minisign(*words: str) -> str:
        done = subprocess.run(["minisign", *words], cwd=tmp_path, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout

    minisign("-G", "-W", "-p", "its.pub", "-s", "its.key")
    run = left_run(tmp_path / "results")
    manifest = run / "manifest.json"
    with secret_key(tmp_path / "its.key", str) as secret:
        key = PublicKey.of(secret)
        Path(f"{manifest}.minisig").write_bytes(sign(secret, manifest.read_bytes(), FIELDS))
    assert key == read_public_key(str(tmp_path / "its.pub"))
    assert COMMENT in minisign("-V", "-m", str(manifest), "-p", "its.pub")
    # minisign writes no leading zeros
    assert key.id.lstrip("0") in (tmp_path / "its.pub").read_text()
    for words in ([], ["-t", "signed by hand"]):
        minisign("-S", "-m", str(manifest), "-s", "its.key", *words)
        found, signed = verify(run, key)
        assert found.altered == () and signed.checked
