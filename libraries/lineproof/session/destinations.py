"""Whether generator and router send to each other's MAC addresses, as far as the addresses that are known tell."""

from __future__ import annotations

from collections.abc import Sequence

from ..generators.base import GeneratorPort
from ..generators.site import GeneratorEndpoint
from ..routers.link_state import LinkState


def wrong_destination(state: LinkState, port: GeneratorPort | None, endpoint: GeneratorEndpoint) -> str:
    """What is wrong where *port* sends to another MAC address than that of its interface, *state*; "": nothing is.

    A next hop of the testbed file is asked before the first frame, whatever the port sends to now.
    """
    if port is None or not port.destination or not state.mac or port.index in endpoint.next_hops:
        return ""
    if port.destination.lower() == state.mac:
        return ""
    return (
        f"has {state.mac}, and the generator's port {port.index}, which is to be cabled to it, sends to"
        f" {port.destination}; fix the port's destination in trex_cfg.yaml, 'ports' in the testbed file or"
        " 'interfaces' of the platform"
    )


def wrong_destinations(
    states: Sequence[LinkState], ports: Sequence[GeneratorPort], endpoint: GeneratorEndpoint
) -> list[str]:
    """:func:`wrong_destination` of each of the router's interfaces, which it names."""
    known = {port.index: port for port in ports}
    pairs = zip(states, endpoint.ports, strict=False)
    found = [(state.interface, wrong_destination(state, known.get(number), endpoint)) for state, number in pairs]
    return [f"router interface {name} {words}" for name, words in found if words]


def dropped_by_card(port: GeneratorPort, addressed: str) -> str:
    """Why the card of *port* drops what the router sends to the MAC address *addressed*; "": it does not."""
    own = port.card_mac.lower()
    if not own or addressed.lower() == own or port.promiscuous:
        return ""
    return (
        f"the router sends to {addressed.lower()}, and the card is {own}: it drops such frames; leave out 'src_mac'"
        " in trex_cfg.yaml and 'peer_mac' in the testbed file, or write 'promiscuous: true' for its generator"
    )
