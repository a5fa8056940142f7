"""A page in headless Chromium: what it shows, and what it asks of the network."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_PROBE = """<script>
setInterval(function () {
  const frames = [...document.querySelectorAll("iframe")].map((frame) => frame.contentDocument);
  const pages = [document, ...frames.filter(Boolean)];
  const images = pages.flatMap((page) => [...page.images].map((image) => [image.alt, image.naturalWidth]));
  const text = pages.map((page) => page.body.innerText).join(" ");
  const addresses = pages.flatMap((page) => [...page.links].map((link) => link.href));
  document.documentElement.dataset.seen = JSON.stringify({text, images, addresses});
}, 100);
</script></body>"""

_SECONDS = 8
"""Of the page's own clock, which does not wait."""


@dataclass(frozen=True)
class Seen:
    """``text``, ``images`` (name, width; 0: broken) and ``addresses`` of links that a reader sees; hosts asked for."""

    text: str
    images: list[list[Any]]
    addresses: list[str]
    hosts: frozenset[str]


def chromium() -> str:
    """The program. Skips where there is none."""
    program = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("needs chromium")
    return program


def look_at(page: Path, folder: Path, place: str = "") -> Seen:
    """Open *page*, at ``#place``, in a profile of its own in *folder*. Skips where there is no Chromium."""
    program = chromium()
    copy, log = folder / "page.html", folder / "net.json"
    text = page.read_text(encoding="utf-8")
    before, _, after = text.rpartition("</body>")
    copy.write_text(before + _PROBE + after, encoding="utf-8")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
    done = subprocess.run(
        [
            *(program, *options, f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}"),
            *("--host-resolver-rules=MAP * ~NOTFOUND", f"--virtual-time-budget={1000 * _SECONDS}", "--dump-dom"),
            f"{copy.as_uri()}{f'#{place}' if place else ''}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = re.search(r'data-seen="([^"]*)"', done.stdout)
    assert found, done.stderr[-2000:]
    seen = json.loads(html.unescape(found[1]))
    hosts = re.findall(r'"url":"(?:https?|wss?)://([^/"]+)', log.read_text(encoding="utf-8", errors="replace"))
    return Seen(seen["text"], seen["images"], seen["addresses"], frozenset(hosts))
