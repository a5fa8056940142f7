"""'lineproof doctor': its output for a testbed that is fit, and for one with mistakes."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from lineproof.platforms import read_platform
from lineproof.project import Project
from lineproof.testbed.files import read_testbed
from lineproof.testbed.opening import OpenTestbed, open_testbed
from support import robot_run
from support.command_line import lineproof
from support.embedded_server import EmbeddedServer, embedded_server
from support.trex_host import trex_host_server

pytestmark = pytest.mark.slow

PROJECT = Project(robot_run.ROOT)


def doctor(folder: Path, *arguments: str, root: Path = robot_run.ROOT) -> subprocess.CompletedProcess[str]:
    (folder / "calibrations").mkdir(exist_ok=True)
    return lineproof(folder, "doctor", *arguments, "--calibrations", str(folder / "calibrations"), cwd=root)


def approved(text: str) -> str:
    return re.sub(r"up for [^;\n]*", "up for TIME", re.sub(r"(127\.0\.0\.1):\d+", r"\1:PORT", text))


def test_a_router_that_differs_from_the_platforms_file_is_a_warning(tmp_path: Path, lab: OpenTestbed):
    root = hardware(tmp_path, lab)
    file = root / "variables" / "platforms" / "netgate6100.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    text = (PROJECT.platforms / "netgate6100.yaml").read_text(encoding="utf-8")
    for old, new in (('"22.02"', '"24.06"'), ("workers: 3", "workers: 2"), ("rx_queues: 3", "rx_queues: 4")):
        text = text.replace(old, new)
    file.unlink(missing_ok=True)
    file.write_text(text, encoding="utf-8")
    found = of_lab(tmp_path, root)
    assert found.returncode == 0, found.stdout + found.stderr
    # this hardware is a simulation, and says so itself
    assert "hardware testbed" in found.stdout and "warning  testbed: SIMULATED: " in found.stdout
    shown = [line for line in found.stdout.splitlines() if line.startswith("warning  router facts: ")]
    assert [line.split("'")[1] for line in shown] == ["version", "workers", "rx_queues", "rx_queues"]
    assert "says 24.06, the router reports v22.02" in shown[0] and "says 2, the router has 3" in shown[1]


def test_no_traffic_unless_asked(tmp_path: Path):
    found = doctor(tmp_path, "simulated", "--platform", "netgate6100", "--software", "linux")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "traffic:" not in found.stdout
    words = "enp3s0f0: 02:00:00:00:01:01, to which port 0 sends; at 10 Gbit/s; down, and taken up for a run"
    assert words in found.stdout


# -- as hardware: a simulated testbed that was started outside the test


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenTestbed]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("lab")
        folder.chmod(0o700)
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        testbed, platform = read_testbed(PROJECT.testbeds, "simulated"), read_platform(PROJECT.platforms, "netgate6100")
        file = PROJECT.platforms / "netgate6100.yaml"
        with open_testbed(testbed, platform, "vpp", platform_file=file) as opened:
            yield opened


def hardware(folder: Path, lab: OpenTestbed, generator: str = "", **values: object) -> Path:
    """A project whose testbed ``lab`` is *lab*; *values* in place of its own."""
    facts, root = lab.facts, robot_run.project(folder)
    values = {
        "known_hosts": facts.router.known_hosts_path,
        "user": facts.router.user,
        "sync": facts.generator.sync_port,
        **values,
    }
    (root / "variables" / "testbeds" / "lab.yaml").write_text(
        f"testbed: lab\nkind: hardware\ngenerator:\n  address: 127.0.0.1\n  sync_port: {values['sync']}\n"
        f"  async_port: {facts.generator.async_port}\n{generator}router:\n  address: 127.0.0.1\n"
        f"  port: {facts.router.port}\n  user: {values['user']}\n  key: {facts.router.key_path}\n"
        f"  known_hosts: {values['known_hosts']}\n  sudo: true\n",
        encoding="utf-8",
    )
    return root


def of_lab(folder: Path, root: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return doctor(folder, "lab", "--platform", "netgate6100", "--listen", "0.2", *more, root=root)


def wrongs(found: subprocess.CompletedProcess[str]) -> list[str]:
    assert found.returncode == 1, found.stdout + found.stderr
    assert found.stderr == ""
    return [line.removeprefix("wrong    ") for line in found.stdout.splitlines() if line.startswith("wrong ")]


def test_the_generator_is_checked_although_the_host_key_is_unknown(tmp_path: Path, lab: OpenTestbed):
    (tmp_path / "empty").write_text("")
    found = of_lab(tmp_path, hardware(tmp_path, lab, known_hosts=tmp_path / "empty"))
    (line,) = wrongs(found)
    shown, _, added = line.partition(" at its console, and if they are the same add this line to the file: ")
    assert approved(shown).startswith(
        f"router login: the host key of the router at 127.0.0.1:PORT is not in '{tmp_path / 'empty'}'; compare its"
        " fingerprint, ssh-ed25519 SHA256:"
    )
    assert added == lab.facts.router.known_hosts_path.read_text().strip()
    assert "ok       port 1: link up" in found.stdout


def test_a_port_of_another_user_is_not_taken_even_with_force(tmp_path: Path, lab: OpenTestbed):
    access = lab.facts.generator
    settings = TrexSettings(access.host, access.sync_port, access.async_port, username="alice")
    with TrexGenerator(settings) as alice:
        found = of_lab(tmp_path, hardware(tmp_path, lab, generator="  force: true\n"))
        (line,) = wrongs(found)
        assert alice.ports
    assert line.startswith("generator: a port of the TRex server at 127.0.0.1:")
    assert "'alice'" in line
    assert "warning  generator: 'force: true': a run takes the ports from other users" in found.stdout
    assert "ok       router system: VPP, v22.02" in found.stdout


def test_a_missing_server_and_a_wrong_user_are_reported(tmp_path: Path, lab: OpenTestbed):
    root = hardware(tmp_path, lab, user="nobody", sync=1)
    generator, login = wrongs(of_lab(tmp_path, root))
    assert generator.startswith("generator: no TRex server answers at 127.0.0.1:1")
    assert login.startswith("router login: the router at 127.0.0.1:")
    assert "refuses the login of 'nobody'" in login


@pytest.mark.netns
def test_the_netns_testbed_passes(tmp_path: Path):
    found = doctor(tmp_path, "netns", "--platform", "linux_router", "--traffic")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "card: Lineproof's embedded server on network namespaces (by its driver)" in found.stdout
    assert "ok       traffic: " in found.stdout
    assert robot_run.processes_of(tmp_path) == []


# -- the generator's host, over its login


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """One core for ports on two nodes."""
    places = {"cores": 1, "numa": [0, 1], "pci": ["0000:03:00.0", "0000:81:00.0"]}
    with embedded_server(tmp_path_factory.mktemp("server"), clock_speed=20, places=places) as found:
        yield found


def with_host(folder: Path, lab: OpenTestbed, server: EmbeddedServer, ssh: str, more: str = "") -> Path:
    root = hardware(folder, lab, generator=f"  ssh: {ssh}\n{more}", sync=server.rpc)
    file = root / "variables" / "testbeds" / "lab.yaml"
    text = file.read_text().replace(
        f"async_port: {lab.facts.generator.async_port}", f"async_port: {server.facts['pub_port']}"
    )
    file.write_text(text)
    return root


def test_the_generators_host_is_read_and_what_is_badly_placed_is_named(
    tmp_path: Path, lab: OpenTestbed, server: EmbeddedServer
):
    with trex_host_server(tmp_path, "two nodes", "narrow slot", "held by linux", "old firmware") as host:
        began = time.monotonic()
        root = with_host(tmp_path, lab, server, host.ssh, "  card: lineproof_model\n")
        found = of_lab(tmp_path, root)
        took = time.monotonic() - began
        checks = json.loads(of_lab(tmp_path, root, "--json").stdout)["checks"]
    assert found.stderr == "" and took < 30  # 10 s on a machine of its own
    lines = found.stdout.splitlines()
    (facts,) = [check["details"] for check in checks if check["check"] == "generator host" and check["state"] == "ok"]
    for each in (
        "operating system: Ubuntu 24.04 (SIMULATED)",
        "card of 0000:03:00.0: model Intel Corporation Ethernet Controller X710 for 10GbE SFP+ (rev 02), driver i40e,"
        " firmware 4.26 0x8000143f 0.0.0, PCIe x4 8 GT/s of x8 8 GT/s, NUMA node 0",
    ):
        assert each in facts, facts
    assert any("0000:81:00.0" in line and "runs at PCIe x4 8 GT/s and can x8 8 GT/s" in line for line in lines)
    warned = [line for line in lines if line.startswith("warning  cores: ")]
    assert "one core sends for ports 0 and 1, which run at 10 Gbit/s; start TRex with -c 4" in warned[0]
    assert "ports 0 and 1 are cards on the NUMA nodes 0 and 1" in warned[1]
    assert "ok       port 0: firmware 4.26 0x8000143f 0.0.0" in lines


def test_a_host_that_refuses_the_login_is_a_warning(tmp_path: Path, lab: OpenTestbed, server: EmbeddedServer):
    with trex_host_server(tmp_path) as host:
        found = of_lab(tmp_path, with_host(tmp_path, lab, server, host.ssh.replace("user: trex", "user: nobody")))
    (line,) = [line for line in found.stdout.splitlines() if "generator host" in line]
    assert line.startswith("warning  generator host: what it is is not read: the generator's host at 127.0.0.1:")
    assert "refuses the login of 'nobody'" in line
