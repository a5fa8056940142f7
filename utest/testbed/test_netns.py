"""The netns testbed: namespaces, server and sshd are started together and removed together."""

import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lineproof.errors import ConfigError, TestbedError
from lineproof.platforms import Platform, Software
from lineproof.system.network_namespace import inside
from lineproof.testbed.netns import CONTROL, MTU, build_topology, home_of_trex
from lineproof.testbed.opening import open_testbed
from lineproof.testbed.settings import NetnsSettings
from support.paths import VARIABLES

PLATFORMS = VARIABLES / "platforms"
FILE = PLATFORMS / "netgate6100.yaml"
PLATFORM = Platform(
    platform="box",
    description="a box",
    ports={"port1": "1 Gbps", "port2": "1 Gbps"},
    software={
        "linux": Software(shell="linux", version="any", interfaces=("left", "right")),
        "vpp": Software(shell="vpp", version="any", interfaces=("left", "right")),
    },
)
SETTINGS = NetnsSettings(testbed="netns", kind="netns")


def test_other_software_than_linux_is_refused(runtime: Path) -> None:
    with pytest.raises(ConfigError, match="take a software with 'shell: linux'"):
        open_testbed(SETTINGS, PLATFORM, "vpp", platform_file=FILE)
    assert list(runtime.iterdir()) == []


def links(namespace: str) -> dict[str, dict[str, Any]]:
    """The interfaces of *namespace* but its loopback, by their names."""
    argv = (*inside(namespace), "ip", "-j", "link")
    found = json.loads(subprocess.run(argv, check=True, capture_output=True, timeout=60).stdout)
    return {link["ifname"]: link for link in found if link["ifname"] != "lo"}


@pytest.mark.netns
def test_each_port_is_cabled_to_the_router() -> None:
    with contextlib.closing(build_topology(("lan0", "wan0"))) as topology:
        assert topology.namespaces == (topology.generator, topology.router)
        near, far = links(topology.generator), links(topology.router)
    assert (set(near), set(far)) == ({"port0", "port1"}, {"lan0", "wan0"})
    for cable in topology.cables:
        port, end = near[cable.port], far[cable.router_interface]
        assert (port["address"], end["address"]) == (cable.port_mac, cable.router_mac)
        # locally administered, unicast
        assert all(int(link["address"][:2], 16) & 3 == 2 and link["mtu"] == MTU for link in (port, end))
        assert "NOARP" in port["flags"] and "MULTICAST" not in end["flags"]
        assert all("UP" in link["flags"] for link in (port, end))


@pytest.mark.netns
def test_without_a_router_the_ports_of_a_pair_are_two_ends() -> None:
    with contextlib.closing(build_topology(("a", "b", "c", "d"), bypass=True)) as topology:
        assert topology.namespaces == (topology.generator,) and topology.router == ""
        ends = {name: link["link"] for name, link in links(topology.generator).items()}
    assert ends == {"port0": "port1", "port1": "port0", "port2": "port3", "port3": "port2"}


@pytest.mark.netns
@pytest.mark.parametrize("bypass", [False, True])
def test_ports_apart_are_joined_past_the_router(bypass: bool) -> None:
    with contextlib.closing(build_topology(bypass=bypass, apart=True)) as topology:
        assert topology.generator == "" and len(topology.namespaces) == (2 if bypass else 3)
        assert all(set(links(cable.namespace)) == {cable.port, CONTROL} for cable in topology.cables)


@pytest.mark.netns
@pytest.mark.parametrize("names", [("a" * 16, "b"), ("eth0", "eth0"), ("a/b", "c")])
def test_bad_interface_names_leave_no_topology(names: tuple[str, str]) -> None:
    with pytest.raises(TestbedError, match="ip link add"):
        build_topology(names)


def test_what_is_missing_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lineproof.system.children.find_program", lambda program: None)
    with pytest.raises(TestbedError, match="'unshare' is missing; install the package util-linux"):
        build_topology()


# -- a real TRex in the generator's namespace


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
