"""Methods that this server does not support: answered as a TRex answers where they are not available."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Any, NoReturn

from .params import Params, refused
from .ports import ServerPort

TPG_DISABLED = "Tagged Packet Group is not enabled."
TPG_DISABLED_ON_PORT = "Tagged Packet Group is not enabled on this port."


def tpg_status(params: Params) -> dict[str, Any]:
    """``get_tpg_status``: tagged packet groups are never enabled."""
    named = ("username" in params) + ("port_id" in params)
    if named != 1:
        word = "only one between" if named else "at least one between"
        raise refused(f"Should provide {word} port_id and username to get TPG status")
    data = {"acquired_ports": [], "num_tags": 0, "num_tpgids": 0, "rx_ports": [], "username": "-"}
    return {"enabled": False, "data": data}


def methods(
    port_of: Callable[[Params], ServerPort], owned: Callable[[Params], ServerPort]
) -> dict[str, Callable[[Params], Any]]:
    """The methods by name. *port_of* and *owned*: the port that a call names, and whether it is its owner's."""

    def refusing(sentence: str, check: Callable[[Params], Any] = lambda _: None) -> Callable[[Params], NoReturn]:
        def method(params: Params) -> NoReturn:
            check(params)
            raise refused(sentence)

        return method

    def push_remote(params: Params) -> NoReturn:
        port = owned(params)
        port.require("push_remote", "IDLE", "STREAMS")
        name = PurePath(params.text("pcap_filename")).name
        raise refused(
            f"capture file '{name:.80}' cannot be read: this server reads no files of its machine; expected to"
            " push the file from the client ('push -f' without '--remote')"
        )

    def tpg_state(params: Params) -> int:
        params.text("username")
        return 0

    found: dict[str, Callable[[Params], Any]] = {
        "get_tpg_status": tpg_status,
        "get_tpg_state": tpg_state,
        "enable_tpg": refusing("Tagged Packet Group can be enabled only in software mode"),
        "push_remote": push_remote,
        "start_capture_port": refusing("Could not enable capture port: this server has none", owned),
        "stop_capture_port": refusing("Could not disable capture port: it is not enabled", owned),
        "set_capture_port_bpf": refusing("capture port is not enabled", owned),
        "conf_ns_batch": refusing("Operation is not supported with current stack: legacy", owned),
        "shutdown": refusing("this server ends with the process that started it; expected Ctrl-C there"),
        "get_async_results": refusing("this server answers every call at once; there is no such ticket"),
        "cancel_async_task": refusing("this server answers every call at once; there is no such ticket"),
    }
    for name in ("disable_tpg", "update_tpg_tags", "clear_updated", "get_tpg_tags"):
        found[name] = refusing(TPG_DISABLED)
    for name in (
        "get_tpg_stats",
        "clear_tpg_stats",
        "get_tpg_tx_stats",
        "clear_tpg_tx_stats",
        "get_tpg_unknown_tags",
        "clear_tpg_unknown_tags",
    ):
        found[name] = refusing(TPG_DISABLED_ON_PORT, port_of)
    return found
