"""Power meters: real answers over real sockets, and what a meter says wrong."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from lineproof.errors import TestbedError
from lineproof.power import open_meter
from lineproof.power.csv_meter import FRESH
from lineproof.power.settings import CsvMeterSettings, PowerSettings
from lineproof.power.shell_meter import RAPL_COMMAND, ipmi_watts, rapl_counters
from support.paths import ROOT
from support.snmp_agent import SnmpAgent

SETTINGS: TypeAdapter[Any] = TypeAdapter(PowerSettings)

SHELLY = {"id": 0, "output": True, "apower": 18.9, "voltage": 229.9, "aenergy": {"total": 11.679}}
SHELLY_1 = {"meters": [{"power": 2.21, "is_valid": True}, {"power": 19.02, "is_valid": True}]}
TASMOTA = {"StatusSNS": {"Time": "2026-01-05T10:00:00", "ENERGY": {"Total": 3.185, "Power": 19, "Voltage": 230}}}
TASMOTA_CHANNELS = {"StatusSNS": {"ENERGY": {"Power": [4, 21]}}}

# The format of ipmitool 1.8.19; synthetic figures
IPMI = """
    Instantaneous power reading:                    42 Watts
    Minimum during sampling period:                 12 Watts
    Maximum during sampling period:                 87 Watts
    Average power reading over sample period:       40 Watts
    IPMI timestamp:                           Thu Aug  1 13:46:34 2024
    Sampling period:                          00000001 Seconds.
    Power reading state is:                   activated

"""


NOW = 1_800_000_000.0
"""Unix time in s."""


def meter(data: dict[str, Any], run: Callable[[str], str] = lambda command: "", now: Callable[[], float] = lambda: NOW):
    return open_meter(SETTINGS.validate_python({"accuracy": 1, **data}), run, now=now)


class Plug:
    """A plug over HTTP; ``answer``: status and body. ``asked``: the paths and authorizations."""

    def __init__(self) -> None:
        self.answer: tuple[int, bytes] = (200, b"{}")
        self.asked: list[tuple[str, str | None]] = []
        plug = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                plug.asked.append((self.path, self.headers.get("Authorization")))
                status, body = plug.answer
                self.send_response(status)
                self.send_header("Location", "http://192.0.2.1/")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *words: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def say(self, data: Any) -> None:
        self.answer = (200, json.dumps(data).encode())


@pytest.fixture
def plug() -> Iterator[Plug]:
    found = Plug()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "answer", "path", "watts"),
    [
        ({"kind": "shelly"}, SHELLY, "/rpc/Switch.GetStatus?id=0", 18.9),
        ({"kind": "shelly-1", "channel": 1}, SHELLY_1, "/status", 19.02),
        ({"kind": "tasmota"}, TASMOTA, "/cm?cmnd=Status%208", 19.0),
        ({"kind": "tasmota", "channel": 1}, TASMOTA_CHANNELS, "/cm?cmnd=Status%208", 21.0),
    ],
)
def test_plugs_are_read(plug: Plug, data: dict[str, Any], answer: Any, path: str, watts: float) -> None:
    plug.say(answer)
    assert meter({**data, "address": plug.address}).watts() == watts
    assert plug.asked == [(path, None)]


@pytest.mark.slow
def test_any_json_is_read_by_its_field(plug: Plug) -> None:
    plug.say({"outlets": [{}, {"mW": 18900}]})
    data = {"kind": "json", "url": f"http://{plug.address}/power", "field": "outlets.1.mW", "factor": 0.001}
    assert meter(data).watts() == pytest.approx(18.9)


@pytest.mark.slow
def test_a_login_is_sent_to_the_meter_alone(plug: Plug, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLUG", "s3cret")
    plug.say(SHELLY_1)
    data = {"kind": "shelly-1", "address": plug.address, "user": "admin", "password_from": "PLUG"}
    meter(data).watts()
    assert plug.asked[0][1] == "Basic YWRtaW46czNjcmV0"
    plug.answer = (302, b"")
    with pytest.raises(TestbedError, match="answered with status 302"):
        meter(data).watts()
    monkeypatch.setenv("PLUG", "")
    with pytest.raises(TestbedError, match="'PLUG', which is empty"):
        meter(data).watts()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, b"no json"), "is no JSON"),
        ((200, b"[" * 50_000), "is no JSON"),
        ((200, b"x" * 100_000), "longer than"),
        ((404, b""), "status 404"),
        ((200, b'{"apower": "many"}'), "expected a power in W"),
        ((200, b'{"apower": -3}'), "expected a power in W"),
        ((200, b'{"apower": NaN}'), "expected a power in W"),
        ((200, b'{"apower": true}'), "expected a power in W"),
        ((200, b'{"power": 3}'), "has no 'apower'"),
        ((200, b"[]"), "has no 'apower'"),
    ],
)
def test_a_plug_that_answers_wrong_is_one_sentence(plug: Plug, answer: tuple[int, bytes], message: str) -> None:
    plug.answer = answer
    with pytest.raises(TestbedError, match=message) as caught:
        meter({"kind": "shelly", "address": plug.address}).watts()
    assert plug.address in str(caught.value) and len(str(caught.value)) < 300


@pytest.mark.slow
def test_a_plug_that_is_not_there(free_port: int = 1) -> None:
    with pytest.raises(TestbedError, match=r"127\.0\.0\.1:1.*does not answer, or breaks off; check address"):
        meter({"kind": "shelly", "address": f"127.0.0.1:{free_port}"}).watts()


# -- SNMP


class Unit(SnmpAgent):
    """A power distribution unit: an SNMP agent with one value."""

    OID = "1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.1"

    def __init__(self, value: int) -> None:
        self._value = value
        super().__init__()

    def add_users(self, agent: Any) -> None:
        """One of SNMPv3."""
        from pysnmp.entity import config

        config.add_v3_user(
            agent, "reader", config.USM_AUTH_HMAC192_SHA256, "authentic1", config.USM_PRIV_CFB128_AES, "private12"
        )
        config.add_vacm_user(agent, 3, "reader", "authPriv", (1, 3, 6), ())

    def export(self, builder: Any) -> None:
        """The power, in the unit of the OID."""
        from pysnmp.proto.api import v2c

        Scalar, Instance = builder.import_symbols("SNMPv2-SMI", "MibScalar", "MibScalarInstance")
        oid = tuple(map(int, self.OID.split(".")))
        scalar = Scalar(oid[:-1], v2c.Gauge32()).setMaxAccess("read-only")
        builder.export_symbols("OUTLET", scalar, Instance(oid[:-1], oid[-1:], v2c.Gauge32(self._value)))


@pytest.fixture(scope="module")
def unit() -> Iterator[Unit]:
    found = Unit(1890)
    yield found
    found.close()


@pytest.mark.slow
def test_an_outlet_is_read_by_either_version(unit: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("COMMUNITY", "c0mmunity"), ("AUTH", "authentic1"), ("PRIV", "private12")):
        monkeypatch.setenv(name, value)
    where = {"kind": "snmp", "address": "127.0.0.1", "port": unit.port, "oid": Unit.OID, "factor": 0.01}
    assert meter({**where, "community_from": "COMMUNITY"}).watts() == pytest.approx(18.9)
    three = {"user": "reader", "authentication_from": "AUTH", "privacy_from": "PRIV"}
    assert meter({**where, **three}).watts() == pytest.approx(18.9)
    other = {**where, "oid": Unit.OID + ".9", "community_from": "COMMUNITY"}
    with pytest.raises(TestbedError, match=r"127\.0\.0\.1.*check address, login and object identifier"):
        meter(other).watts()


@pytest.mark.slow
def test_an_outlet_that_does_not_answer(unit: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMUNITY", "wr0ng")
    monkeypatch.setattr("lineproof.system.snmp.LIMIT", 0.2)
    where = {"kind": "snmp", "address": "127.0.0.1", "port": unit.port, "oid": Unit.OID}
    with pytest.raises(TestbedError, match=r"No SNMP response.*check address, login and object identifier") as caught:
        meter({**where, "community_from": "COMMUNITY"}).watts()
    assert "wr0ng" not in str(caught.value)


# -- inside the router


def test_ipmi_is_read() -> None:
    asked: list[str] = []

    def run(command: str) -> str:
        asked.append(command)
        return IPMI

    assert meter({"kind": "ipmi"}, run).watts() == 42.0
    assert asked == ["ipmitool dcmi power reading"]


@pytest.mark.parametrize("text", ["", IPMI.replace("activated", "deactivated"), IPMI.replace("42 Watts", "? Watts")])
def test_ipmi_without_a_meter_is_one_sentence(text: str) -> None:
    with pytest.raises(TestbedError, match="may have no meter"):
        ipmi_watts(text)


def test_rapl_counts_its_packages_and_their_overflow() -> None:
    answers = iter(
        [
            "100.00 50.00\npackage-0 1000000 9999999\npackage-1 9000000 9999999\n",
            "102.00 51.00\npackage-0 5000000 9999999\npackage-1 1000000 9999999\n",
            "104.00 51.00\npackage-0 7000000 9999999\npackage-1 3000000 9999999\n",
        ]
    )
    found = meter({"kind": "rapl"}, lambda command: next(answers))
    watts = found.begin()
    assert watts() == pytest.approx((4 + 2) / 2)
    assert watts() == pytest.approx((2 + 2) / 2)
    assert "processor alone" in found.covers and RAPL_COMMAND.count("intel-rapl:[0-9]") == 1


def test_rapl_of_a_router_that_restarted_is_refused() -> None:
    answers = iter(["100.00 50.00\npackage-0 1 9\n", "2.00 1.00\npackage-0 1 9\n"])
    with pytest.raises(TestbedError, match="has it restarted"):
        meter({"kind": "rapl"}, lambda command: next(answers)).begin()()


@given(st.text(max_size=200))
def test_no_text_makes_a_power_that_is_not_there(text: str) -> None:
    for parse in (ipmi_watts, rapl_counters):
        with pytest.raises(TestbedError):
            parse(text)


# -- a file


@pytest.mark.parametrize("stamp", [lambda now: f"{now:.1f}", lambda now: time.strftime("%FT%TZ", time.gmtime(now))])
def test_the_last_whole_line_of_a_file_is_read(tmp_path: Path, stamp: Callable[[float], str]) -> None:
    file = tmp_path / "power.csv"
    file.write_text(f"time,volts,watts\n{stamp(NOW - 2)},230,17\n", encoding="ascii")
    watts = meter({"kind": "csv", "file": file, "column": 3}).begin()
    with file.open("a", encoding="ascii") as lines:
        lines.write(f"{stamp(NOW)},230,19.5\n{stamp(NOW)},23")
    assert watts() == 19.5


def test_a_line_counts_once_and_only_if_its_time_is_not_before(tmp_path: Path) -> None:
    file = tmp_path / "power.csv"
    file.write_text(f"{NOW},1\n", encoding="ascii")
    watts = meter({"kind": "csv", "file": file}).begin()
    found = [watts()]
    for line in (f"{NOW - 0.1},2\n", f"{NOW + 0.1},3\n", "", f"{NOW + 0.1},4\n", f"{NOW + 0.2},5\n"):
        with file.open("a", encoding="ascii") as lines:
            lines.write(line)
        found.append(watts())
    assert found == [None, None, 3.0, None, None, 5.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("", "no whole line"),
        ("12,3\n", "s old, at most 3 s"),
        ("LATER,3\n", "is of 2 s in the future; expected clocks that agree"),
        ("yesterday,3\n", "'yesterday' is no time"),
        ("NOW\n", "no column 2"),
        ("NOW,many\n", "expected a power in W"),
        ("nan,3\n", "s old"),
    ],
)
def test_a_file_that_says_wrong_is_one_sentence(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "power.csv"
    if text is not None:
        file.write_text(text.replace("NOW", f"{NOW:.1f}").replace("LATER", f"{NOW + 2:.1f}"), encoding="utf-8")
    with pytest.raises(TestbedError, match=message):
        meter({"kind": "csv", "file": file}).begin()


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
        watts = meter(data).begin()
        file.write_text(",".join([now, *line[1:]]) + "\n", "utf-8")
        assert watts() == float(line[2])
    interval = CsvMeterSettings.model_fields["interval"].default
    assert f"{FRESH:g} × `interval` old, {FRESH * interval:g} s by default" in rest
    assert f"(default {CsvMeterSettings.model_fields['column'].default}," in rest


# -- the keys


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"kind": "shelly"}, "needs 'address'"),
        ({"kind": "json", "url": "http://a/"}, "'url' and 'field'"),
        ({"kind": "json", "url": "file:///etc/passwd", "field": "x"}, "begins with http"),
        ({"kind": "snmp", "address": "pdu", "oid": "sysDescr", "user": "a"}, "digits and dots"),
        ({"kind": "snmp", "address": "pdu", "oid": "1.3.6.1.4.1"}, "either 'community_from'"),
        ({"kind": "snmp", "address": "pdu", "oid": "1.3.6.1.4.1", "community_from": "a b"}, "environment variable"),
        ({"kind": "shelly", "address": "-x", "accuracy": 1}, "name or address"),
        ({"kind": "snmp", "address": "pdu", "oid": "1.3.6.1.4.1", "community_from": "HOME"}, "that every program gets"),
        ({"kind": "ipmi", "accuracy": 0}, "greater than 0"),
        ({"kind": "ipmi", "interval": 1000}, "(?s)1 validation error .*less than or equal to 60"),
    ],
)
def test_wrong_keys_are_refused(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SETTINGS.validate_python({"accuracy": 1, **data})


@pytest.mark.parametrize("keys", [{"interval": 5, "settle": 2}, {"interval": 60, "settle": 59.9}, {"settle": 0.5}])
@pytest.mark.parametrize(
    "kind", [{"kind": "csv", "file": "x"}, {"kind": "rapl"}, {"kind": "shelly", "address": "plug"}]
)
def test_a_meter_settles_for_an_interval_at_least(kind: dict[str, Any], keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"'settle' is .* of time before the traffic; expected 'settle: "):
        SETTINGS.validate_python({"accuracy": 1, **kind, **keys})


@pytest.mark.parametrize(
    ("keys", "usual", "snmp"),
    [({}, 2, 5), ({"interval": 3}, 3, 5), ({"interval": 30}, 30, 30), ({"interval": 3, "settle": 4}, 4, 4)],
)
def test_without_settle_it_is_the_usual_one_or_an_interval(keys: dict[str, Any], usual: float, snmp: float) -> None:
    assert SETTINGS.validate_python({"accuracy": 1, "kind": "ipmi", **keys}).settle == usual
    where = {"kind": "snmp", "address": "pdu", "oid": "1.3.6.1.4.1", "community_from": "PDU"}
    assert SETTINGS.validate_python({"accuracy": 1, **where, **keys}).settle == snmp


def test_the_accuracy_has_no_default() -> None:
    with pytest.raises(ValidationError, match="accuracy"):
        SETTINGS.validate_python({"kind": "ipmi"})
