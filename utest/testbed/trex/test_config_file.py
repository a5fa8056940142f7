"""TRex's configuration file and arguments, from what testbed files say."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lineproof.config import read_yaml, validate_config
from lineproof.errors import ConfigError, TestbedError
from lineproof.system.login import Login
from lineproof.testbed.files import read_testbed
from lineproof.testbed.hardware import server_order
from lineproof.testbed.netns import home_of_trex
from lineproof.testbed.settings import HardwareSettings
from lineproof.testbed.trex.config_file import (
    LINUX_NAME,
    PCI_ADDRESS,
    PortInfo,
    Threads,
    TrexConfig,
    interfaces_problem,
)
from lineproof.testbed.trex.server import ServerOrder
from lineproof.testbed.trex.settings import StartSettings
from lineproof.testbed.trex.wrapper import RESERVED_ARGUMENTS, extra_problem, trex_arguments, wrapper_command

# the manual's "Platform YAML configuration": what each key may hold
SCHEMA = {
    "version": int,
    "port_limit": int,
    "interfaces": list,
    "zmq_rpc_port": int,
    "zmq_pub_port": int,
    "low_end": bool,
    "low_end_core": int,
    "prefix": str,
    "limit_memory": str,
    "port_speed": int,
    "port_bandwidth_gb": int,
    "port_info": list,
    "platform": dict,
}
CARDS = ("0000:03:00.0", "0000:03:00.1")

LAB = """\
testbed: lab
kind: hardware
generator:
  address: 192.0.2.10
  trex_home: /opt/trex/v3.08
  ssh: {user: admin, key: keys/id}
  start: START
router: {address: 192.0.2.20, user: admin, key: keys/id}
"""


def lab(folder: Path, start: str, **changed: str) -> HardwareSettings:
    text = LAB.replace("START", start)
    for old, new in changed.items():
        text = re.sub(rf"^  {old}: .*\n", new, text, flags=re.MULTILINE)
    (folder / "lab.yaml").write_text(text)
    found = read_testbed(folder, "lab")
    assert isinstance(found, HardwareSettings)
    return found


def written(config: TrexConfig) -> dict[str, object]:
    (found,) = yaml.safe_load(config.text())
    for key, value in found.items():
        assert isinstance(value, SCHEMA[key]), (key, value)
    assert found["version"] == 2 and found["port_limit"] == len(found["interfaces"])
    return found


pci = st.from_regex(PCI_ADDRESS, fullmatch=True).filter(str.isascii)
linux = st.from_regex(LINUX_NAME, fullmatch=True).filter(
    lambda name: name.isascii() and not PCI_ADDRESS.fullmatch(name)
)
texts = st.one_of(pci, linux, st.just("dummy"), st.text(max_size=20))


@given(st.lists(texts, max_size=6))
def test_interfaces_are_refused_or_written_as_they_are(names: list[str]) -> None:
    config = TrexConfig(tuple(names))
    if interfaces_problem(tuple(names)):
        with pytest.raises(ValueError, match=r"\w"):
            config.text()
        return
    found = written(config)["interfaces"]
    assert isinstance(found, list) and len(found) == len(names)
    for name, item in zip(names, found, strict=True):
        assert item == name or (item.startswith("--vdev=net_af_packet") and f",iface={name}," in item)


@given(
    st.builds(PortInfo, st.just("10.0.0.1"), st.just("10.0.0.2"), st.sampled_from(["", "10:20:30:40:50:55"])),
    st.integers(1, 65535),
    st.one_of(st.none(), st.integers(64, 9999)),
)
def test_addresses_and_numbers_are_written_unchanged(port: PortInfo, rpc: int, memory: int | None) -> None:
    found = written(TrexConfig(CARDS, (port, port), rpc_port=rpc, memory=memory))
    assert found["port_info"] == [port.data(), port.data()]
    assert found["zmq_rpc_port"] == rpc
    assert found.get("limit_memory") == (None if memory is None else str(memory))


def test_cpus_are_written_as_trex_expects() -> None:
    found = written(TrexConfig(CARDS, threads=Threads(0, 1, ((1, (2, 3)),))))
    assert found["platform"] == {
        "master_thread_id": 0,
        "latency_thread_id": 1,
        "dual_if": [{"socket": 1, "threads": [2, 3]}],
    }


@pytest.mark.parametrize(
    ("threads", "says"),
    [
        (Threads(0, 1, ()), "0 pairs"),
        (Threads(0, 1, ((0, (1, 2)),)), "stands twice"),
        (Threads(0, 1, ((0, ()),)), "at least one"),
    ],
)
def test_impossible_cpus_are_refused(threads: Threads, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        TrexConfig(CARDS, threads=threads).text()


def ordered(found: HardwareSettings) -> ServerOrder:
    assert found.trex is not None
    return server_order(found.trex, found.cabled_sides)


def test_a_testbed_file_becomes_a_server_order(tmp_path: Path) -> None:
    found = lab(tmp_path, "{interfaces: ['03:00.0', '03:00.1'], cores: 4, sudo: true, extra: [--prom]}")
    made = ordered(found)
    config = yaml.safe_load(made.config)[0]
    assert config["port_info"] == [
        {"ip": "100.65.1.2", "default_gw": "100.65.1.1"},
        {"ip": "100.65.2.2", "default_gw": "100.65.2.1"},
    ]
    assert config["interfaces"] == ["03:00.0", "03:00.1"]
    assert "--software" not in made.arguments and "low_end" not in config
    assert made.arguments[-3:] == ("-c", "4", "--prom")
    assert made.sudo and made.login == Login(
        "192.0.2.10", 22, "admin", tmp_path.resolve() / "keys/id", Path.home() / ".ssh/known_hosts"
    )
    assert ServerOrder.from_json(made.to_json()) == made


def test_ports_in_use_get_the_addresses_of_their_sides(tmp_path: Path) -> None:
    found = lab(
        tmp_path,
        "{interfaces: ['03:00.0', '03:00.1', '04:00.0', dummy], ports: [{}, {dest_mac: 02:00:00:00:00:09},"
        " {default_gw: 10.1.1.1}, {}]}\n  ports: [2, 1]",
    )
    first, second, third, fourth = yaml.safe_load(ordered(found).config)[0]["port_info"]
    assert third == {"ip": "100.65.1.2", "default_gw": "10.1.1.1"}
    assert second == {"dest_mac": "02:00:00:00:00:09"}
    assert first == fourth == {"dest_mac": "02:00:00:00:00:00"}


def test_speed_and_memory_of_the_ports_are_three_keys(tmp_path: Path) -> None:
    start = "{interfaces: ['03:00.0', '03:00.1'], port_speed: 2.5 Gbps, port_bandwidth_gb: 100, mbuf_factor: 0.5}"
    found = lab(tmp_path, start)
    made = ordered(found)
    (config,) = yaml.safe_load(made.config)
    assert (config["port_speed"], config["port_bandwidth_gb"]) == (2500, 100)  # Mbit/s, Gbit/s
    assert made.arguments[-2:] == ("--mbuf-factor", "0.5")


def test_linux_interfaces_mean_software(tmp_path: Path) -> None:
    found = lab(tmp_path, "{host: local, interfaces: [veth0, veth1]}", ssh="")
    made = ordered(found)
    assert made.login is None and made.linux and "--software" in made.arguments
    config = yaml.safe_load(made.config)[0]
    assert config["low_end"] is True and config["prefix"] == made.prefix == "lineproof-4501"


def test_start_true_uses_the_hosts_own_configuration(tmp_path: Path) -> None:
    found = lab(tmp_path, "true")
    assert found.trex.start == StartSettings()
    assert ordered(found).config == ""
    assert lab(tmp_path, "false").trex.start is None


@pytest.mark.parametrize(
    ("start", "changed", "says"),
    [
        ("{interfaces: [03:00.0]}", {}, "even number"),
        ("{interfaces: ['03:00.0', eth1]}", {}, "not both"),
        ("{interfaces: ['03:00.0', '03:00.0']}", {}, "stands twice"),
        ("{interfaces: ['03:00.0', 'x,y']}", {}, "is no interface"),
        ("{low_end: true}", {}, "'interfaces' too"),
        ("{interfaces: ['03:00.0', dummy]}", {}, "port 1 is 'dummy'"),
        ("{interfaces: ['03:00.0', '03:00.1'], extra: ['; reboot']}", {}, "no argument of TRex's"),
        ("{extra: [--astf]}", {}, "leave it out"),
        ("{extra: [--cfg=/x]}", {}, "leave it out"),
        ("{extra: [--mbuf-factor, '2']}", {}, "leave it out"),
        ("{port_speed: 10 Gbps}", {}, "'interfaces' too"),
        ("{interfaces: ['03:00.0', '03:00.1'], port_speed: 10}", {}, "port_speed"),
        ("{interfaces: ['03:00.0', '03:00.1'], port_speed: 1 kbps}", {}, "whole number of Mbit/s"),
        ("{prefix: '../x'}", {}, "prefix"),
        ("true", {"ssh": ""}, "host: local"),
        ("true", {"trex_home": ""}, "needs 'trex_home'"),
    ],
)
def test_what_cannot_be_started_is_refused(tmp_path: Path, start: str, changed: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as error:
        lab(tmp_path, start, **changed)
    assert "lab.yaml:" in str(error.value)


@given(st.text(min_size=1, max_size=30))
def test_arguments_reach_trex_unsplit(argument: str) -> None:
    if not extra_problem(argument):
        assert not set(argument) & set(" \t\n;|&$`'\"\\<>(){}*?!#~")
        assert argument not in RESERVED_ARGUMENTS
    # and what does pass is one word of an argv list, whatever it holds
    argv = wrapper_command("/opt/$(touch x)", trex_arguments(1, True, True, (argument,)), linux=True, grace=1)
    assert argv[-1] == argument


@pytest.mark.slow
def test_the_script_is_posix_shell() -> None:
    argv = wrapper_command("/nowhere-at-all", (), linux=True, grace=1)
    assert subprocess.run(["/bin/sh", "-n", "-c", argv[2]], timeout=10, check=False).returncode == 0


def test_a_wrong_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValidationError):
        StartSettings(cores=0)
    path = tmp_path / "x.yaml"
    path.write_text("core: 1\n")
    with pytest.raises(ConfigError, match="did you mean 'cores'"):
        validate_config(*read_yaml(path)[:1], StartSettings, path, read_yaml(path)[1])


def test_trex_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TREX_HOME", raising=False)
    with pytest.raises(TestbedError, match="TREX_HOME is not set"):
        home_of_trex()
    monkeypatch.setenv("TREX_HOME", str(tmp_path))
    with pytest.raises(TestbedError, match="there is no TRex in it"):
        home_of_trex()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "t-rex-64").touch()
    assert home_of_trex() == tmp_path / "scripts"
