"""Copying the client that a server ships over SSH: once, checked, from a known host only, and the errors."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from lineproof.errors import TestbedError
from lineproof.generators.trex import clients as copies
from lineproof.generators.trex.clients import ServerFacts, fetch_client
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from lineproof.system.login import Login
from lineproof_bench.shells.server import asyncssh
from support.hostile_ssh import HostileServer, OpenHouse
from support.server_support import FakeBackend, serving

pytestmark = pytest.mark.slow

SERVER = ServerFacts("127.0.0.1:4501", False, "v3.08")
INSIDE = "automation/trex_control_plane/interactive"


class Host(HostileServer):
    """A machine with an SSH server, whose ``/opt`` is in *root*."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.logins = 0

        def commands(process: asyncssh.SSHServerProcess[bytes]) -> None:
            self.logins += 1
            command = (process.command or "").replace("/opt/trex/", f"{root}/opt/trex/")
            done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
            process.stdout.write(done.stdout)
            process.stderr.write(done.stderr)
            process.exit(done.returncode)

        super().__init__(folder, OpenHouse, process_factory=commands)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    home = tmp_path / "disk" / "opt/trex/v3.08" / INSIDE
    for name, text in {
        "trex/__init__.py": "",
        "trex/stl/trex_stl_client.py": "class STLClient: ...\n",
        "trex/stl/api.py": "# profiles import it\n",
        "trex/console/trex_console.py": "# not needed\n",
        "trex/stl/notes.txt": "not needed",
        "trex_stl_lib/api.py": "from trex.stl.api import *\n",
    }.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    (tmp_path / "secret.py").write_text("secret")
    (home / "trex" / "linked.py").symlink_to(tmp_path / "secret.py")
    (home / "trex" / "folder").symlink_to(tmp_path)
    return tmp_path / "disk"


@pytest.fixture
def host(tmp_path: Path, root: Path) -> Iterator[Host]:
    with contextlib.closing(Host(tmp_path, root)) as found:
        yield found


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_client_is_copied_once_without_unneeded_files(host: Host) -> None:
    found = fetch_client(host.login(), "/opt/trex/v3.08", SERVER)
    assert names(found) == {"trex/__init__.py", "trex/stl/trex_stl_client.py", "trex/stl/api.py", "trex_stl_lib/api.py"}
    assert found.name == "trex-v3.08"
    assert fetch_client(host.login(), "/opt/trex/v3.08", SERVER) == found and host.logins == 1
    assert [path.name for path in copies.copies_folder().iterdir()] == [found.name]


def test_places_without_an_installation_are_named(host: Host, root: Path) -> None:
    (root / "opt/trex/v3.08").rename(root / "opt/trex/a trex")
    for home, places in (("", r"'/opt/trex/v3\.08', '/opt/trex'"), ("/elsewhere", "'/elsewhere'")):
        with pytest.raises(TestbedError, match=rf"no TRex installation in {places} at .* that 'admin' .*'trex_home'"):
            fetch_client(host.login(), home, SERVER)
    assert "trex/stl/trex_stl_client.py" in names(fetch_client(host.login(), "/opt/trex/a trex", SERVER))


def test_nothing_is_copied_without_a_host_and_its_key(host: Host) -> None:
    with pytest.raises(TestbedError, match=r"TRex server's host at 127\.0\.0\.1:1: Connection refused; check"):
        fetch_client(Login(address="127.0.0.1", port=1, user="admin", key=host.key, known_hosts=host.known), "", SERVER)
    host.known.write_text("")
    with pytest.raises(TestbedError, match=r"is not in '.*known_hosts'"):
        fetch_client(host.login(), "", SERVER)
    assert host.logins == 0 and not copies.copies_folder().exists()


@pytest.mark.skipif(not os.environ.get("TREX_HOME"), reason="TREX_HOME has to name TRex's scripts folder")
def test_the_copy_of_a_real_client_drives_a_server(tmp_path: Path) -> None:
    with contextlib.closing(Host(tmp_path, tmp_path)) as host, serving(FakeBackend()) as server:
        settings = TrexSettings("127.0.0.1", server.rpc_port, server.pub_port, client="from server")
        for _ in range(2):
            fetch = partial(fetch_client, host.login(), os.environ["TREX_HOME"])
            with contextlib.closing(TrexGenerator(settings, fetch)) as generator:
                assert str(copies.copies_folder()) in generator.versions["client"]
                assert [port.index for port in generator.ports] == [0, 1]
        assert host.logins == 1


def test_a_cache_that_cannot_be_written_is_named_and_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    with pytest.raises(TestbedError, match=r"cannot be written: .*XDG_CACHE_HOME"):
        copies.store_copy(copies.copies_folder() / "trex-v3.08", bytes(1024))
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]
