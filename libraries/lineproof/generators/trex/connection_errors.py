"""What a refused connection to a TRex server means, in words with a fix."""

from __future__ import annotations

from pathlib import Path

from ...errors import TestbedError
from ..base import PortsTaken
from .client_choice import handshake_error
from .client_process import ClientError
from .port_claims import read_claims
from .server_facts import ServerFacts


def connection_error(error: ClientError, async_port: int, server: ServerFacts, folder: Path | None) -> TestbedError:
    """*error* of the client's process that connects and acquires ports, for a person. *folder*: of its library."""
    address = server.where
    if error.kind == "install":
        return TestbedError(
            f"{error}; expected trex-stl-lib 0.3 and what it requires, which every client here needs:"
            " pip install trex-stl-lib==0.3"
        )
    if error.kind == "connect" and "mismatch" in str(error).lower():
        return handshake_error(server, folder, str(error))
    if error.kind == "connect" and "subscriber" in str(error):
        return TestbedError(
            f"the TRex server at {address} answers, but publishes nothing that trex-stl-lib 0.3 understands at port"
            f" {async_port}; fix 'async_port' in the testbed file ({error})"
        )
    if error.kind == "taken":
        own_claims = "; ".join(f"port {claim.ports}: {claim}" for claim in read_claims(address)[1])
        return PortsTaken(
            f"a port of the TRex server at {address} is taken: {error}"
            + (f" (runs of your own hold {own_claims})" if own_claims else " (TRex does not report since when)")
            + "; have it released there, or set 'force: true' for the generator in the testbed file to take it away"
        )
    return TestbedError(f"the TRex server at {address}: {error}")


_REMEDIES = {
    "for flow stat": "; the card's filters cannot count such frames; expected TRex started with '--software'",
    "Failed allocating statistic counter": "; the card counts no more streams at a time ('lineproof doctor' shows how"
    " many); expected fewer streams with flow statistics, or TRex started with '--software'",
}


def remedy_of(refusal: str) -> str:
    """Return what to add to the server's words; "" where they say enough."""
    return next((remedy for words, remedy in _REMEDIES.items() if words in refusal), "")
