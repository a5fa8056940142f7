"""TRex's configuration file and arguments, from what testbed files say."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lineproof.errors import ConfigError, TestbedError
from lineproof.system.login import Login
from lineproof.testbed.files import read_testbed
from lineproof.testbed.hardware import server_order
from lineproof.testbed.netns import PortInfo, config_text, home_of_trex
from lineproof.testbed.settings import HardwareSettings
from lineproof.testbed.trex.server import ServerOrder
from lineproof.testbed.trex.settings import StartSettings
from lineproof.testbed.trex.wrapper import RESERVED_ARGUMENTS, extra_problem, trex_arguments, wrapper_command

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


def test_a_server_on_linux_interfaces_gets_its_macs_and_one_cpu() -> None:
    ports = (PortInfo("veth0", "02:00:00:00:00:01", "02:00:00:00:01:01"), PortInfo("veth1", "", ""))
    (config,) = yaml.safe_load(config_text(ports, 3, "one", 10_000))
    assert config["version"] == 2 and config["port_limit"] == 2
    first, second = config["interfaces"]
    assert first.startswith("--vdev=net_af_packet0,iface=veth0,") and ",iface=veth1," in second
    assert config["port_info"][0] == {"src_mac": "02:00:00:00:00:01", "dest_mac": "02:00:00:00:01:01"}
    assert (config["low_end"], config["low_end_core"], config["prefix"], config["port_speed"]) == (
        True,
        3,
        "one",
        10_000,
    )


def ordered(found: HardwareSettings) -> ServerOrder:
    assert found.trex is not None
    return server_order(found.trex)


def test_a_testbed_file_becomes_a_server_order(tmp_path: Path) -> None:
    made = ordered(lab(tmp_path, "{cores: 4, sudo: true, extra: [--prom, --cfg, /etc/two.yaml]}"))
    assert made.arguments[-5:] == ("-c", "4", "--prom", "--cfg", "/etc/two.yaml")
    assert made.config == "" and not made.linux
    assert made.sudo and made.login == Login(
        "192.0.2.10", 22, "admin", tmp_path.resolve() / "keys/id", Path.home() / ".ssh/known_hosts"
    )
    assert ServerOrder.from_json(made.to_json()) == made


def test_a_server_on_this_machine_needs_no_login(tmp_path: Path) -> None:
    assert ordered(lab(tmp_path, "{host: local}", ssh="")).login is None


def test_start_true_is_the_default_way(tmp_path: Path) -> None:
    assert lab(tmp_path, "true").trex.start == StartSettings()
    assert lab(tmp_path, "false").trex.start is None


@pytest.mark.parametrize(
    ("start", "changed", "says"),
    [
        ("{extra: ['; reboot']}", {}, "no argument of TRex's"),
        ("{extra: [--astf]}", {}, "leave it out"),
        ("{extra: [--emu=/x]}", {}, "leave it out"),
        ("{interfaces: [eth1, eth2]}", {}, "interfaces"),
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
    argv = wrapper_command("/opt/$(touch x)", trex_arguments(1, (argument,)), linux=True, grace=1)
    assert argv[-1] == argument


@pytest.mark.slow
def test_the_script_is_posix_shell() -> None:
    argv = wrapper_command("/nowhere-at-all", (), linux=True, grace=1)
    assert subprocess.run(["/bin/sh", "-n", "-c", argv[2]], timeout=10, check=False).returncode == 0


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
