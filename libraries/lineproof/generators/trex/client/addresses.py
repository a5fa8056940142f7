# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""Asks the next hops of ports for their MAC addresses, through the server."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..next_hops import ADDRESS, NEXT_HOP, TRIES, TRY_SECONDS, Question
from .answers import destination_state
from .service import Refusal

POLL_INTERVAL = 0.05
"""Seconds between two looks at what has come."""

MOST_KEPT, LENGTH_KEPT = 200, 128
"""Frames that the capture keeps between two looks, and bytes of each."""


def question_of(
    port: int, status: Mapping[str, Any], own_mac: str, named: Mapping[str, str] | None, explicit: bool
) -> Question | None:
    """Return what *port* has to ask; None if its destination is known. Raises Refusal if there is nobody to ask.

    *status*: ``get_port_status``; *named*: ``source`` and ``address`` of the testbed file. *explicit*: it comes before
    what the server knows; else it is for a server that knows no next hop.
    """
    layers, state = status["attr"].get("layer_cfg") or {}, destination_state(status)
    mac = str((layers.get("ether") or {}).get("src") or own_mac)
    tags = tuple(int(tag) for tag in (status["attr"].get("vlan") or {}).get("tags") or ())
    if named and (explicit or state == "none"):
        key = NEXT_HOP if named.get("explicit") else ADDRESS
        return Question(port, mac, named["source"], named["address"], tags, key)
    if state == "unresolved":
        return Question(port, mac, str(layers["ipv4"].get("src")), str(layers["ipv4"].get("dst")), tags)
    if state == "none":
        raise Refusal(
            "refused",
            f"port {port} has no destination MAC address, so no router would take its frames; expected"
            " 'dest_mac', or 'ip' and 'default_gw', for this port in the server's trex_cfg.yaml",
        )
    return None


def find_next_hops(
    ask: Callable[..., Any], capture: int, questions: Sequence[Question], check_cancelled: Callable[[], None]
) -> dict[int, str]:
    """The MAC addresses by port; a port whose next hop is silent is missing. The ports are in service mode.

    *ask* is a request to the server; *capture* the number of a running CAPTURE on the ports. Raises Refusal if two
    machines answer one question, and what *check_cancelled* raises.
    """
    found: dict[int, str] = {}
    for _ in range(TRIES):
        silent = [question for question in questions if question.port not in found]
        for question in silent:
            packet = {"binary": base64.b64encode(question.frame).decode()}
            own = {"use_port_dst_mac": False, "use_port_src_mac": False}
            ask("push_pkts", port_id=question.port, pkts=[packet | own], force=True, ipg_usec=0)
        limit = time.monotonic() + TRY_SECONDS
        while time.monotonic() < limit:
            check_cancelled()
            kept = ask("capture", command="fetch", capture_id=capture, pkt_limit=MOST_KEPT, snaplen=LENGTH_KEPT)
            found |= _answers(silent, kept["pkts"])
            if len(found) == len(questions):
                return found
            time.sleep(POLL_INTERVAL)
    return found


def _answers(questions: Sequence[Question], rows: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    found: dict[int, str] = {}
    for row in rows:
        frame = base64.b64decode(row["binary"])
        for question in questions:
            mac = question.answer(frame) if question.port == row["port"] else ""
            if mac and found.setdefault(question.port, mac) != mac:
                raise Refusal(
                    "refused",
                    f"{found[question.port]} and {mac} both answer for {question}; expected one machine with that"
                    " address",
                )
    return found


def silence(questions: Sequence[Question]) -> str:
    """Why nothing was sent, where nobody answers *questions*; and what to do."""
    return (
        f"nobody answers for {', '.join(map(str, questions))}, asked {TRIES} times in {TRIES * TRY_SECONDS:g} s;"
        " expected that the router's interfaces are up and have these addresses; if not, fix each where it comes from"
        " ('default_gw' is in the server's trex_cfg.yaml)"
    )
