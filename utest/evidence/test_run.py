"""The run's folder keeps what was measured, also after a crash, and can be read and checked by others."""

import errno
import json
import os
import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import jsonschema
import pytest

from lineproof.errors import ConfigError, TestbedError
from lineproof.evidence import records
from lineproof.evidence.integrity import check_integrity
from lineproof.evidence.record_schemas import schema_problems
from lineproof.evidence.run import RunFolder, new_run_id, read_run
from lineproof.evidence.run_files import sha256_of
from support.evidence_builders import ENVIRONMENT, RUN, requirement_record, trial_record


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "results", RUN)


def filled(folder):
    folder.write_environment(ENVIRONMENT)
    folder.add_trial(trial_record(number=1))
    folder.add_trial(trial_record(number=2, losses=(7,)))
    folder.add_requirement(requirement_record())
    folder.add_telemetry(1, "vppctl show runtime", "Thread 1 vpp_wk_0\n")
    return folder


def test_run_ids_sort_by_time_and_differ():
    first = datetime(2026, 11, 21, 4, 0, 0, tzinfo=UTC)
    ids = [new_run_id(first + timedelta(seconds=s)) for s in (0, 1, 59, 3600, 86400, 40 * 86400)]
    assert ids == sorted(ids)
    assert new_run_id(first) != new_run_id(first)
    assert (
        new_run_id(first)[:16] == new_run_id(first.astimezone(timezone(timedelta(hours=9))))[:16] == "20261121T040000Z"
    )


def test_a_run_id_without_time_zone_is_refused():
    with pytest.raises(ValueError, match="time zone"):
        new_run_id(datetime(2026, 11, 21))


def test_everything_written_can_be_read(folder):
    filled(folder).close()
    run = read_run(folder.path)
    assert [record.trial.lost for record in run.trials] == [0, 7]
    assert run.requirements == (requirement_record(),)
    assert run.environment == ENVIRONMENT
    assert run.notes == ()


@pytest.mark.parametrize(
    ("simulated", "testbed", "changes"),
    [
        (True, "hardware", {"extra": {"simulated_because": ["x"]}}),
        (True, "hardware", {"clock_speed": 50.0}),
        (True, "hardware", {"versions": {"generator.server": "SIMULATED"}}),
        (True, "simulated", {}),
        (False, "hardware", {"versions": {"generator.server": "v3.08"}}),
    ],
)
def test_one_sign_of_a_simulation_is_enough(folder, simulated, testbed, changes):
    folder.write_environment(replace(ENVIRONMENT, **{"simulated": False, "clock_speed": 1.0} | changes))
    folder.add_input("variables/testbeds/lab.yaml", f"kind: {testbed}\n".encode())
    assert read_run(folder.path).simulated == simulated


def test_names_of_files_that_are_not_utf_8_are_names_too(folder):
    odd = os.fsdecode(b"\xff\xe9.yaml")
    filled(folder)
    folder.add_input(f"variables/profiles/{odd}", b"a: 1\n")
    folder.write_environment(replace(ENVIRONMENT, extra={"project": odd}))
    (folder.path / odd).write_text("of somebody else")
    folder.close()
    assert odd in json.loads((folder.path / "manifest.json").read_bytes())["files"]
    assert b"  inputs/variables/profiles/\xff\xe9.yaml\n" in (folder.path / "SHA256SUMS").read_bytes()
    # the run's own list of its files lacks what somebody else put there
    (folder.path / odd).unlink()
    folder.close()
    assert read_run(folder.path).environment.extra == {"project": odd}
    found = check_integrity(folder.path)
    assert list(schema_problems(found)) == []
    (folder.path / "inputs/variables/profiles" / odd).unlink()
    with pytest.raises(ConfigError, match=r"udcff.udce9.yaml': is missing"):
        read_run(folder.path)
    manifest = (folder.path / "manifest.json").read_text().replace("environment.json", r"\ud800")
    (folder.path / "manifest.json").write_text(manifest)
    assert "manifest.json was changed: it is no manifest of a run" in map(str, check_integrity(folder.path).altered)


def test_two_runs_do_not_share_a_folder(folder):
    for number in (2, 3):
        with RunFolder.create(folder.path.parent, RUN) as another:
            assert another.run_id == another.path.name == f"{RUN}-{number}"


@pytest.mark.parametrize("make", [lambda path: path.write_text(""), lambda path: path.symlink_to("not mounted")])
def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path, make):
    make(tmp_path / "results")
    with pytest.raises(TestbedError, match="cannot be made: "):
        RunFolder.create(tmp_path / "results", RUN)


def test_a_failed_write_leaves_whole_lines(folder, monkeypatch):
    filled(folder)
    real, calls = os.write, []

    def half(descriptor: int, data: bytes) -> int:
        calls.append(data)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data[:20])

    monkeypatch.setattr("lineproof.files.os.write", half)
    full = (
        r"trials\.jsonl cannot be written: No space left on device \(.* free there\); free space on that disk, or keep"
    )
    with pytest.raises(TestbedError, match=full):
        folder.add_trial(trial_record(number=3))
    monkeypatch.undo()
    folder.add_trial(trial_record(number=3))
    assert [record.trial.number for record in read_run(folder.path).trials] == [1, 2, 3]


def alterations(folder: Path) -> set[str]:
    return set(map(str, check_integrity(folder).altered))


def test_records_after_closing_are_kept_and_summed_by_the_next_close(folder):
    filled(folder).close()
    was = sha256_of(folder.path / "trials.jsonl")
    folder.add_trial(trial_record(number=3))
    assert alterations(folder.path) == {f"trials.jsonl was changed: its SHA-256 was {was}"}
    folder.close()
    assert check_integrity(folder.path).altered == ()


def test_the_manifest_fits_its_schema_and_leaves_out_derived_files(folder):
    (folder.path / "allure").mkdir()
    (folder.path / "allure" / "x-result.json").write_text("{}")
    filled(folder).close()
    data = json.loads((folder.path / "manifest.json").read_text())
    jsonschema.validate(data, records.schema(records.MANIFEST))
    assert set(data["files"]) == {
        "environment.json",
        "files.jsonl",
        "readings.jsonl",
        "requirements.jsonl",
        "trials.jsonl",
        "telemetry/001-vppctl-show-runtime.txt",
    }


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("sha256sum"), reason="no sha256sum here")
def test_sha256sum_agrees(folder):
    filled(folder).close()
    command = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    assert subprocess.run(command, cwd=folder.path, check=False).returncode == 0
    with (folder.path / "trials.jsonl").open("a") as file:
        file.write("\n")
    assert subprocess.run(command, cwd=folder.path, check=False, capture_output=True).returncode == 1


def test_telemetry_files_have_safe_unique_names(folder):
    first = folder.add_telemetry(3, "../../etc/passwd; show int", "a")
    second = folder.add_telemetry(3, "../../etc/passwd; show int", "ß\n")
    assert first.parent == second.parent == folder.path / "telemetry"
    assert first.name == "003-etc-passwd-show-int.txt"
    assert (first.read_text(), second.read_text()) == ("a", "ß\n")


def test_the_environment_file_is_replaced_atomically(folder):
    folder.write_environment(ENVIRONMENT)
    folder.close(replace(ENVIRONMENT, ended=5.0))
    run = read_run(folder.path)
    assert run.environment.ended == 5.0
    assert not list(folder.path.glob(".*"))
