"""The netns testbed as data: names, commands, keys; and, as root, that the commands make and remove it."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from lineproof.errors import ConfigError
from lineproof.testbed import namespaces, sshd
from lineproof.testbed.leases import permitted_teardown


def test_names_have_our_prefix_and_fit_the_kernel() -> None:
    found = namespaces.plan_topology("ab12")
    assert (found.generator, found.router) == ("lr-ab12-gen", "lr-ab12-dut")
    for cable in found.cables:
        assert len(cable.port) <= 15 and len(cable.router_interface) <= 15
        # locally administered, unicast
        assert all(int(mac[:2], 16) & 3 == 2 for mac in (cable.port_mac, cable.router_mac))
    macs = [mac for cable in found.cables for mac in (cable.port_mac, cable.router_mac)]
    assert len(set(macs)) == 4


def test_addresses_are_those_of_the_methodology() -> None:
    first, second = namespaces.plan_topology("x").cables
    assert (first.port_ipv4, first.router_address, first.network) == ("100.65.1.2", "100.65.1.1/24", "16.0.0.0/8")
    assert (second.port_ipv4, second.router_address, second.network) == ("100.65.2.2", "100.65.2.1/24", "48.0.0.0/8")


def test_every_interface_is_made_inside_its_namespace() -> None:
    found = namespaces.plan_topology("x", ("lan0", "wan0"))
    links = [command for command in found.setup if command[:3] == ("ip", "link", "add")]
    assert len(links) == 2
    for command, name in zip(links, ("lan0", "wan0"), strict=True):
        text = " ".join(command)
        assert f"netns {found.generator}" in text and f"name {name}" in text and f"netns {found.router}" in text
    for command in found.setup:
        assert command[0] == "ip" and (command[1] in ("-n", "netns", "link"))


def test_the_teardown_may_be_run_from_a_lease() -> None:
    assert all(permitted_teardown(command) for command in namespaces.plan_topology("ab12").teardown)


@pytest.mark.parametrize("tag", ["", "-x", "a b", "a;b", "../x", "x" * 60])
def test_a_bad_tag_is_refused(tag: str) -> None:
    with pytest.raises(ConfigError, match="letters, digits"):
        namespaces.plan_topology(tag)


@pytest.mark.parametrize("names", [("a" * 16, "b"), ("eth0", "eth0"), ("a/b", "c")])
def test_bad_interface_names_are_refused(names: tuple[str, str]) -> None:
    with pytest.raises(ConfigError):
        namespaces.plan_topology("x", names)


def test_the_reason_against_netns_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert re.search("root", namespaces.reason_against() or "")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("lineproof.system.children.find_program", lambda program: None)
    assert "iproute2" in (namespaces.reason_against() or "")


@pytest.mark.slow
def test_sessions_get_their_command_as_one_argument(tmp_path: Path) -> None:
    """A stand-in for 'ip' shows what it is given: the client's command reaches one shell, in the namespace, unsplit."""
    fake = tmp_path / "ip tool"
    fake.write_text("#!/bin/sh\nprintf '[%s]' \"$@\"\n")
    fake.chmod(0o700)
    script = tmp_path / "session"
    script.write_text(sshd.session_script(str(fake), "lr-x-dut"))
    script.chmod(0o700)
    command = "echo 'a  b'; ls $HOME | wc"
    done = subprocess.run(
        [script], env={"SSH_ORIGINAL_COMMAND": command}, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == f"[netns][exec][lr-x-dut][/bin/sh][-c][{command}]"


def test_the_server_refuses_passwords(tmp_path: Path) -> None:
    text = sshd.configuration(tmp_path, 2222, "root", pam=False)
    assert "PasswordAuthentication no" in text and "KbdInteractiveAuthentication no" in text
    assert "ListenAddress 127.0.0.1:2222" in text and "AllowUsers root" in text


@pytest.mark.netns
def test_a_real_sshd_serves_a_shell_inside_the_router(tmp_path: Path) -> None:
    topology = namespaces.plan_topology(f"t{uuid.uuid4().hex[:8]}")
    process = None
    try:
        for command in topology.setup:
            subprocess.run(command, check=True, capture_output=True, timeout=60)
        server = sshd.prepare(tmp_path / "ssh", topology.router)
        assert stat.S_IMODE(server.folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(server.client_key.stat().st_mode) == 0o600
        for command in server.setup:
            subprocess.run(command, check=True, timeout=60)
        process = subprocess.Popen(server.argv, stderr=subprocess.DEVNULL)
        line = ("ssh", "-F", "none", "-i", str(server.client_key), "-p", str(server.port))
        options = ("BatchMode=yes", "StrictHostKeyChecking=yes", f"UserKnownHostsFile={server.known_hosts}")
        flags = [word for option in options for word in ("-o", option)]
        done = None
        for _ in range(50):
            done = subprocess.run(
                [*line, *flags, f"{server.user}@{server.host}", "ip -o link show; exit 7"],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            if done.returncode != 255:
                break
            time.sleep(0.1)
        assert done is not None and done.returncode == 7, done
        assert "eth0@" in done.stdout and "eth1@" in done.stdout and "port0@" not in done.stdout
    finally:
        if process is not None:
            process.terminate()
            process.wait(30)
        for command in topology.teardown:
            subprocess.run(command, check=False, capture_output=True, timeout=60)
    assert namespaces.existing_namespaces(topology.generator.removeprefix("lr-").removesuffix("-gen")) == ()


@pytest.mark.netns
def test_namespaces_are_found_by_the_start_of_their_tag() -> None:
    tag = f"t{uuid.uuid4().hex[:8]}"
    topology = namespaces.plan_topology(tag)
    try:
        for command in topology.setup[:1]:
            subprocess.run(command, check=True, capture_output=True, timeout=60)
        assert namespaces.existing_namespaces(tag[:-1]) == (topology.generator,)
    finally:
        subprocess.run(topology.teardown[0], check=False, timeout=60)
    assert namespaces.existing_namespaces(tag) == ()


@pytest.mark.netns
def test_the_probe_of_a_killed_process_goes_at_the_next_one() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    names = [f"{namespaces.PREFIX}{namespaces.PROBE}{process}" for process in (ended.pid, os.getppid())]
    try:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True, timeout=60)
        assert namespaces.reason_against() is None
        left = namespaces.existing_namespaces(namespaces.PROBE)
        assert names[0] not in left and names[1] in left, "that of a living process stays"
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True, timeout=60)
