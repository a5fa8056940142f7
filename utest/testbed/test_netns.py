"""Testbeds are opened: of namespaces, server and sshd together; of a model in one process; of hardware as it is."""

import contextlib
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lineproof.errors import ConfigError, TestbedError
from lineproof.platforms import Platform, Software, read_platform
from lineproof.system import children
from lineproof.system.network_namespace import inside
from lineproof.testbed.netns import CONTROL, MTU, build_topology, home_of_trex
from lineproof.testbed.opening import hardware_facts, open_testbed
from lineproof.testbed.settings import HardwareSettings, NetnsSettings, SimulatedSettings, read_testbed
from support.paths import ROOT, VARIABLES
from support.patience import wait_until

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


def test_trex_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for named in ("", str(tmp_path)):
        monkeypatch.setenv("TREX_HOME", named)
        with pytest.raises(TestbedError, match=f"TREX_HOME names '{named}', in which there is none"):
            home_of_trex()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "_t-rex-64").touch()
    assert home_of_trex() == tmp_path / "scripts"


NETGATE = read_platform(PLATFORMS, "netgate6100")
SIMULATED = SimulatedSettings(testbed="simulated", kind="simulated", clock_speed=5.0)


def test_an_unknown_software_is_reported_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="no software 'vp' here; known: vpp, vpp-1q, vpp-2q, linux, pfsense"):
        open_testbed(SIMULATED, NETGATE, "vp", platform_file=FILE)


def test_hardware_starts_nothing(runtime: Path) -> None:
    testbed = read_testbed(ROOT / "variables" / "testbeds", "lab-example")
    assert isinstance(testbed, HardwareSettings)
    with open_testbed(testbed, NETGATE, "vpp", platform_file=FILE) as opened:
        assert opened.facts == hardware_facts(testbed, NETGATE, "vpp")
        assert opened.facts.generator.trex is not None and opened.facts.generator.trex.server == "192.0.2.10"
        assert opened.facts.sides[0].peer_mac == ""
        assert not opened.facts.simulated
        assert opened.problems() == ()
    assert {path.suffix for path in runtime.iterdir()} == {".in-use"}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_serve_leaves_nothing_behind(runtime: Path, number: int) -> None:
    argv = (*children.python("lineproof"), "serve", "--platform", "netgate6100", "--rpc-port", "0", "--pub-port", "0")
    with children.Child(argv, stderr=children.PIPE, cwd=ROOT) as process:
        output = list[bytes]()
        while not output or not output[-1].startswith(b"Ctrl-C"):
            output.append(process.line(60))
        assert b"SIMULATED" in b"".join(output) and b"sync port" in b"".join(output)
        process.send_signal(number)
        assert process.communicate(timeout=15)[1] == b""
    assert process.returncode == (-9 if number == signal.SIGKILL else 0)
    wait_until(lambda: list(runtime.iterdir()) == [])
