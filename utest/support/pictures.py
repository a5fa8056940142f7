"""Words that tests read of a picture."""

from __future__ import annotations

from xml.etree import ElementTree


def words(svg: str) -> str:
    """Return the texts of a picture."""
    texts = (node for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text"))
    return " | ".join("".join(node.itertext()) for node in texts)
