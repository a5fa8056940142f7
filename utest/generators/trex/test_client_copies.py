"""Copying the client that a server ships over SSH: once, checked, from a known host only, and the errors."""

import asyncio
import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lineproof.errors import TestbedError
from lineproof.generators.trex import client_copies as copies
from lineproof.generators.trex.client_fetch import fetcher
from lineproof.generators.trex.client_folders import client_api
from lineproof.generators.trex.driver import TrexGenerator, TrexSettings
from lineproof.generators.trex.server_facts import ServerFacts
from lineproof.system.login import Login
from lineproof_bench.shells.ssh_library import asyncssh
from support.server_support import FakeBackend, serving

SERVER = ServerFacts("127.0.0.1:4501", False, (5, 1), "v3.08")
INSIDE = "automation/trex_control_plane/interactive"
SOURCE = "        api_ver = {'name': 'STL', 'major': 5, 'minor': 1}\n"


class Host:
    """A machine with an SSH server whose root folder is *root*; ``running`` is where a TRex server runs there."""

    def __init__(self, folder: Path, root: Path, sftp: bool = True) -> None:
        self.folder, self.running, self.logins, self._sftp = folder, "", 0, sftp
        self._root = root
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        host, user = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
        user.write_private_key(str(folder / "key"))
        (folder / "key").chmod(0o600)
        (folder / "authorized").write_bytes(user.export_public_key())
        self._server = asyncio.run_coroutine_threadsafe(self._serve(host), self._loop).result(10)
        self.port = self._server.sockets[0].getsockname()[1]
        self.trust(host)

    def trust(self, key: asyncssh.SSHKey) -> None:
        line = key.export_public_key().decode()
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {line}")

    async def _serve(self, host: asyncssh.SSHKey) -> Any:
        def files(channel: Any) -> asyncssh.SFTPServer:
            self.logins += 1
            return asyncssh.SFTPServer(channel, chroot=os.fsencode(self._root))

        def commands(process: asyncssh.SSHServerProcess[str]) -> None:
            process.stdout.write(f"{self.running}\n")
            process.exit(0)

        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_host_keys=[host],
            authorized_client_keys=str(self.folder / "authorized"),
            sftp_factory=files if self._sftp else None,
            process_factory=commands,
        )

    def login(self, **other: Any) -> Login:
        settings = {"key_path": self.folder / "key", "known_hosts_path": self.folder / "known_hosts", **other}
        return Login("127.0.0.1", self.port, "trex", **settings)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)


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
    (tmp_path / "ssh").mkdir()
    found = Host(tmp_path / "ssh", root)
    yield found
    found.close()


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_the_client_is_copied_once_without_unneeded_files(host: Host) -> None:
    found = fetcher(host.login(), "/opt/trex/v3.08")(SERVER)
    assert names(found) == {
        "trex/__init__.py",
        "trex/stl/trex_stl_client.py",
        "trex/stl/api.py",
        "trex_stl_lib/api.py",
    }
    assert client_api(found) == (5, 1) and found.parent.name.startswith("v3.08-")
    assert fetcher(host.login(), "/opt/trex/v3.08")(SERVER) == found and host.logins == 1
    assert [path.name for path in copies.copies_folder().iterdir()] == [found.parent.name]


@pytest.mark.slow
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
def test_a_changed_copy_is_never_used(host: Host, change: Callable[[Path], Any]) -> None:
    found = fetcher(host.login())(SERVER)
    before = names(found)
    change(found)
    again = fetcher(host.login())(SERVER)
    assert again == found and names(again) == before and host.logins == 2


@pytest.mark.slow
def test_the_folder_of_the_running_server_is_found(host: Host, root: Path) -> None:
    (root / "srv").mkdir()
    (root / "opt/trex/v3.08").rename(root / "srv/trex")
    with pytest.raises(TestbedError, match=r"no TRex installation in '/opt/trex/v3\.08', '/opt/trex' at .*'trex_home'"):
        fetcher(host.login())(SERVER)
    host.running = "/srv/trex"
    assert client_api(fetcher(host.login())(SERVER)) == (5, 1)
    with pytest.raises(TestbedError, match=r"no TRex installation in '/elsewhere' at .* that 'trex' may read"):
        fetcher(host.login(), "/elsewhere")(ServerFacts("x", False, None, "v3.09"))


@pytest.mark.slow
def test_no_login_to_a_host_with_an_unknown_key(host: Host) -> None:
    host.trust(asyncssh.generate_private_key("ssh-ed25519"))
    with pytest.raises(TestbedError, match=r"shows another host key than '.*known_hosts' holds"):
        fetcher(host.login())(SERVER)
    (host.folder / "known_hosts").write_text("")
    with pytest.raises(TestbedError, match=r"is not in '.*known_hosts'; compare its fingerprint"):
        fetcher(host.login())(SERVER)
    (host.folder / "known_hosts").unlink()
    with pytest.raises(TestbedError, match="known_hosts', which is missing; compare"):
        fetcher(host.login())(SERVER)
    assert host.logins == 0 and not copies.copies_folder().exists()


@pytest.mark.slow
def test_the_error_of_a_failed_login_has_no_password(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TestbedError, match="environment variable 'TREX_PASSWORD', which is not set"):
        fetcher(host.login(key_path=None, password_from="TREX_PASSWORD"))(SERVER)
    monkeypatch.setenv("TREX_PASSWORD", "hunter2")
    with pytest.raises(TestbedError, match=r"(refuses the login of 'trex'|no SSH login)") as caught:
        fetcher(host.login(key_path=None, password_from="TREX_PASSWORD"))(SERVER)
    assert "hunter2" not in str(caught.value) and caught.value.__cause__ is None
    host.close()
    with pytest.raises(TestbedError, match=r"TRex server's host at 127\.0\.0\.1:1: Connection refused; check"):
        fetcher(Login("127.0.0.1", 1, "trex", host.folder / "key", host.folder / "known_hosts"))(SERVER)


@pytest.mark.slow
def test_a_host_without_sftp_is_named_with_both_ways_out(tmp_path: Path) -> None:
    host = Host(tmp_path, tmp_path, sftp=False)
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
    with pytest.raises(TestbedError, match=r"cannot be kept in .*XDG_CACHE_HOME"):
        copies.store_copy("v3.08", {"trex/stl/trex_stl_client.py": SOURCE.encode()}, "here")


def test_without_a_home_folder_the_error_names_xdg_cache_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "expanduser", no_home)
    with pytest.raises(TestbedError, match=r"no home folder.*XDG_CACHE_HOME"):
        copies.find_copy("v3.08")


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("TREX_HOME"), reason="TREX_HOME has to name TRex's scripts folder")
def test_the_copy_of_a_real_client_drives_a_server_and_stays_unchanged(tmp_path: Path) -> None:
    (tmp_path / "ssh").mkdir()
    host = Host(tmp_path / "ssh", Path(os.environ["TREX_HOME"]))
    fetch = fetcher(host.login(), "/")
    try:
        with serving(FakeBackend()) as server:
            settings = TrexSettings("127.0.0.1", server.rpc_port, server.pub_port, client="from server")
            for _ in range(2):
                with TrexGenerator(settings, fetch=fetch) as generator:
                    assert str(copies.copies_folder()) in generator.versions["client"]
                    assert [port.index for port in generator.ports] == [0, 1]
    finally:
        host.close()
    assert host.logins == 1


def test_a_full_cache_is_one_sentence_and_keeps_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(TestbedError, match=r"No space left on device \(.*free there\); free space .* XDG_CACHE_HOME"):
        copies.store_copy("v3.08", {"trex/stl/trex_stl_client.py": SOURCE.encode()}, "test")
    assert not [path for path in tmp_path.rglob("*") if path.name not in ("lineproof", "trex-client")]
