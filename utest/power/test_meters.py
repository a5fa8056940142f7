"""Power meters: commands and files that are read, and what a meter says wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from lineproof.errors import TestbedError
from lineproof.power import FRESH, CsvMeterSettings, MeterAccess, NextFigure, PowerSettings
from support.paths import ROOT

SETTINGS: TypeAdapter[Any] = TypeAdapter(PowerSettings)

NOW = 1_800_000_000.0
"""Unix time in s."""


def begun(data: dict[str, Any], run: Callable[[str], str] = lambda command: "") -> NextFigure:
    return SETTINGS.validate_python({"accuracy": 1, **data}).begin(MeterAccess(run, now=lambda: NOW))


IPMI = """
    Instantaneous power reading:                    42 Watts
    Minimum during sampling period:                 12 Watts
    Maximum during sampling period:                 87 Watts
    Average power reading over sample period:       40 Watts
    IPMI timestamp:                           Thu Aug  1 13:46:34 2024
    Sampling period:                          00000001 Seconds.
    Power reading state is:                   activated

"""
"""The format of ipmitool 1.8.19; synthetic figures."""

PRINTED = {
    "snmpget": ("1890\n", 18.9),
    "curl": ('{"id": 0, "output": true, "apower": 18.9, "voltage": 229.9, "aenergy": {"total": 11.679}}', 18.9),
    "ipmitool": (IPMI, 42.0),
    "j()": ("19400000\n", 19.4),
}
"""By the first word of each command in the documents: what it prints, and the power in W."""


def documented() -> dict[str, dict[str, Any]]:
    page = (ROOT / "docs/methodology/quantities.md").read_text("utf-8")
    section = page.partition("### Meters by a command\n")[2].partition("\n### ")[0]
    found = [yaml.safe_load(text)["power"] for text in re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)]
    return {data["run"].split()[0]: data for data in found}


@pytest.mark.slow
@pytest.mark.parametrize("program", PRINTED)
def test_the_documents_show_commands_that_are_read(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(documented()) == set(PRINTED)
    data, (printed, watts) = documented()[program], PRINTED[program]
    (tmp_path / "printed").write_text(printed, "utf-8")
    stand_in = tmp_path / program
    stand_in.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\ncat {tmp_path}/printed\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for name in data.get("secrets", ()):
        monkeypatch.setenv(name, "c0mmunity")
    asked: list[str] = []

    def on_router(command: str) -> str:
        asked.append(command)
        return printed

    assert begun(data, on_router)() == pytest.approx(watts)
    if data.get("runs_on") == "router":
        assert asked == [data["run"]]
    elif "secrets" in data:
        assert "-c c0mmunity" in (tmp_path / "arguments").read_text()


@pytest.mark.parametrize(
    ("keys", "printed", "message"),
    [
        ({}, "", "prints 'nothing'; expected "),
        ({}, "19.5 W", "prints '19.5 W'; expected "),
        ({}, "-3", "reports '-3', expected a power in W"),
        ({"pattern": "a=(.*)"}, "a=many", "reports 'many', expected a power in W"),
        ({"pattern": "(a)?b"}, "b", "prints 'b'; expected "),
        ({"json_path": "apower"}, "no json", "is not JSON"),
        ({"json_path": "apower"}, "x" * 2_000_000, "expected at most"),
        ({"json_path": "apower"}, '{"apower": NaN}', "expected a power in W"),
        ({"json_path": "apower"}, '{"apower": true}', "has no number at 'apower'"),
        ({"pattern": documented()["ipmitool"]["pattern"]}, IPMI.replace("activated", "off"), "expected "),
    ],
)
def test_a_command_that_prints_wrong_is_one_sentence(keys: dict[str, Any], printed: str, message: str) -> None:
    data = {"kind": "command", "run": "show power", "runs_on": "router", **keys}
    with pytest.raises(TestbedError, match=message) as caught:
        begun(data, lambda command: printed)()
    assert "the meter 'show power' on the router: " in str(caught.value) and len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("", "its last whole line is ''; expected Unix seconds or ISO 8601"),
        ("12,3\n", "s old, expected -1 to 3 s"),
        ("LATER,3\n", "is -2 s old, expected -1 to 3 s"),
        ("yesterday,3\n", "its last whole line is 'yesterday,3'"),
        ("NOW\n", "and a power in column 2"),
        ("NOW,many\n", "expected a power in W"),
        ("nan,3\n", "s old"),
    ],
)
def test_a_file_that_says_wrong_is_one_sentence(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "power.csv"
    if text is not None:
        file.write_text(text.replace("NOW", f"{NOW:.1f}").replace("LATER", f"{NOW + 2:.1f}"), encoding="utf-8")
    with pytest.raises(TestbedError, match=message):
        begun({"kind": "csv", "file": file})


def test_the_documents_show_a_file_that_is_read(tmp_path: Path) -> None:
    section = (ROOT / "docs/methodology/quantities.md").read_text("utf-8").partition("### The file of another meter")[2]
    _, lines, _, keys, rest = section.split("```", 4)
    line = lines.split("\n")[-2].split(",")
    unix = re.search(r"`([0-9.]+)`", rest)
    assert unix is not None and datetime.fromisoformat(line[0]).timestamp() == int(float(unix[1]))
    file = tmp_path / "watts.csv"
    data = {**yaml.safe_load(keys.removeprefix("yaml"))["power"], "file": file}
    utc = datetime.fromtimestamp(NOW, UTC)
    for now in (utc.isoformat(), utc.replace(tzinfo=None).isoformat(), str(NOW)):
        file.write_text(f"time,V,W\n{NOW - 1},0,0\n", "utf-8")
        watts = begun(data)
        file.write_text(",".join([now, *line[1:]]) + "\n", "utf-8")
        assert watts() == float(line[2])
    interval = CsvMeterSettings.model_fields["interval"].default
    assert f"{FRESH:g} × `interval` old, {FRESH * interval:g} s by default" in rest
    assert f"(default {CsvMeterSettings.model_fields['column'].default}," in rest
