"""Copying the client that a server ships over SSH: once, checked, from a known host only, and the errors."""

import contextlib
import errno
import os
import pwd
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lineproof.errors import TestbedError
from lineproof.generators.trex import client_fetch as copies
from lineproof.generators.trex.client_fetch import fetcher
from lineproof.generators.trex.client_folders import client_api
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from lineproof.generators.trex.server_facts import ServerFacts
from lineproof.system.login import Login
from lineproof_bench.shells.ssh_library import asyncssh
from support.hostile_ssh import HostileServer, OpenHouse
from support.server_support import FakeBackend, serving

SERVER = ServerFacts("127.0.0.1:4501", False, (5, 1), "v3.08")
INSIDE = "automation/trex_control_plane/interactive"
SOURCE = "        api_ver = {'name': 'STL', 'major': 5, 'minor': 1}\n"


class Host(HostileServer):
    """A machine with an SSH server whose root folder is *root*; ``running`` is where a TRex server runs there."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.running, self.logins = b"", 0

        def files(channel: Any) -> asyncssh.SFTPServer:
            self.logins += 1
            return asyncssh.SFTPServer(channel, chroot=os.fsencode(root))

        def commands(process: asyncssh.SSHServerProcess[bytes]) -> None:
            process.stdout.write(self.running + b"\n")
            process.exit(0)

        super().__init__(folder, OpenHouse, sftp_factory=files, process_factory=commands)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine's disk with TRex."""
    home = tmp_path / "disk" / "opt/trex/v3.08" / INSIDE
    for name, text in {
        "trex/__init__.py": "",
        "trex/stl/trex_stl_client.py": SOURCE,
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


@pytest.mark.slow
def test_the_client_is_copied_once_without_unneeded_files(host: Host) -> None:
    found = fetcher(host.login(), "/opt/trex/v3.08")(SERVER)
    assert names(found) == {"trex/__init__.py", "trex/stl/trex_stl_client.py", "trex/stl/api.py", "trex_stl_lib/api.py"}
    assert client_api(found) == (5, 1) and found.parent.name.startswith("v3.08-")
    assert fetcher(host.login(), "/opt/trex/v3.08")(SERVER) == found and host.logins == 1
    assert [path.name for path in copies.copies_folder().iterdir()] == [found.parent.name]


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: (tree / "trex/stl/api.py").write_text("import os\n"),
        lambda tree: (tree / "trex/more.py").write_text(""),
        lambda tree: (tree / "trex/stl/api.py").unlink(),
        lambda tree: (tree / "trex/link.py").symlink_to("/etc/hostname"),
        lambda tree: (tree.parent / "source.json").unlink(),
    ],
)
def test_a_changed_copy_is_never_used(change: Callable[[Path], Any]) -> None:
    files = {"trex/stl/trex_stl_client.py": SOURCE.encode(), "trex/stl/api.py": b""}
    kept = copies.store_copy("v3.08", files, "here")
    assert copies.find_copy("v3.08") == kept
    change(kept)
    assert copies.find_copy("v3.08") is None and not kept.exists()
    assert copies.store_copy("v3.08", files, "here") == kept and names(kept) == set(files)


@pytest.mark.slow
def test_the_folder_of_the_running_server_is_found(host: Host, root: Path) -> None:
    (root / "srv").mkdir()
    (root / "opt/trex/v3.08").rename(root / "srv/trex")
    with pytest.raises(TestbedError, match=r"no TRex installation in '/opt/trex/v3\.08', '/opt/trex' at .*'trex_home'"):
        fetcher(host.login())(SERVER)
    host.running = b"/srv/trex"
    assert client_api(fetcher(host.login())(SERVER)) == (5, 1)
    with pytest.raises(TestbedError, match=r"no TRex installation in '/elsewhere' at .* that 'admin' may read"):
        fetcher(host.login(), "/elsewhere")(ServerFacts("x", False, None, "v3.09"))


@pytest.mark.slow
def test_nothing_is_copied_without_a_host_and_its_key(host: Host) -> None:
    with pytest.raises(TestbedError, match=r"TRex server's host at 127\.0\.0\.1:1: Connection refused; check"):
        fetcher(Login("127.0.0.1", 1, "admin", host.key, host.known))(SERVER)
    host.known.write_text("")
    with pytest.raises(TestbedError, match=r"is not in '.*known_hosts'"):
        fetcher(host.login())(SERVER)
    assert host.logins == 0 and not copies.copies_folder().exists()


@pytest.mark.slow
def test_a_host_without_sftp_is_named_with_both_ways_out(tmp_path: Path) -> None:
    host = HostileServer(tmp_path, OpenHouse)
    with contextlib.closing(host), pytest.raises(TestbedError, match=r"offers no SFTP .*'Subsystem sftp.*as 'client'"):
        fetcher(host.login())(SERVER)


@pytest.mark.slow
def test_a_folder_beyond_the_limits_is_not_copied(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lineproof.generators.trex.client_fetch.MAX_FILES", 3)
    with pytest.raises(TestbedError, match="is more than a TRex client"):
        fetcher(host.login())(SERVER)
    assert not copies.copies_folder().exists()


def test_a_cache_that_cannot_be_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(TestbedError, match=r"cannot be written: .*XDG_CACHE_HOME"):
        copies.store_copy("v3.08", {"trex/stl/trex_stl_client.py": SOURCE.encode()}, "here")


def test_without_a_home_folder_the_error_names_xdg_cache_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    with pytest.raises(TestbedError, match=r"no account.*XDG_CACHE_HOME"):
        copies.find_copy("v3.08")


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("TREX_HOME"), reason="TREX_HOME has to name TRex's scripts folder")
def test_the_copy_of_a_real_client_drives_a_server_and_stays_unchanged(tmp_path: Path) -> None:
    with contextlib.closing(Host(tmp_path, Path(os.environ["TREX_HOME"]))) as host, serving(FakeBackend()) as server:
        settings = TrexSettings("127.0.0.1", server.rpc_port, server.pub_port, client="from server")
        for _ in range(2):
            with TrexGenerator(settings, fetch=fetcher(host.login(), "/")) as generator:
                assert str(copies.copies_folder()) in generator.versions["client"]
                assert [port.index for port in generator.ports] == [0, 1]
        assert host.logins == 1


def test_a_full_cache_is_one_sentence_and_keeps_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(TestbedError, match=r"No space left on device \(.*free there\); free space .* XDG_CACHE_HOME"):
        copies.store_copy("v3.08", {"trex/stl/trex_stl_client.py": SOURCE.encode()}, "test")
    assert not [path for path in tmp_path.rglob("*") if path.name not in ("lineproof", "trex-client")]
