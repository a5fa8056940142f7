"""TRex's configuration file, and how testbed files say that it is to be started."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lineproof.errors import ConfigError, TestbedError
from lineproof.testbed.files import read_testbed
from lineproof.testbed.netns import config_text, home_of_trex

LAB = """\
testbed: lab
kind: hardware
generator:
  address: 192.0.2.10
  start: sudo -n ./t-rex-64 -c 4
"""


def test_a_server_on_linux_interfaces_gets_its_macs_and_one_cpu() -> None:
    ports = [("veth0", "02:00:00:00:00:01", "02:00:00:00:01:01"), ("veth1", "", "")]
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


@pytest.mark.parametrize("more", ["trex_home: /opt/trex/v3.08", "ssh: {user: admin, key: keys/id}"])
def test_a_start_needs_a_folder_and_a_login(tmp_path: Path, more: str) -> None:
    (tmp_path / "lab.yaml").write_text(f"{LAB}  {more}\n")
    with pytest.raises(ConfigError, match=r"lab\.yaml:.*'start' needs 'trex_home'"):
        read_testbed(tmp_path, "lab")


def test_trex_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TREX_HOME", raising=False)
    with pytest.raises(TestbedError, match="TREX_HOME is not set"):
        home_of_trex()
    monkeypatch.setenv("TREX_HOME", str(tmp_path))
    with pytest.raises(TestbedError, match="there is no TRex in it"):
        home_of_trex()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "_t-rex-64").touch()
    assert home_of_trex() == tmp_path / "scripts"
