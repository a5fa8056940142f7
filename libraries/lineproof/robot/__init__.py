"""Robot Framework's side: one keyword library, thin. The only room that imports Robot, but for Allure's listener."""

from .library import Lineproof

__all__ = ["Lineproof"]
