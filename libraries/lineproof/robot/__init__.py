"""Robot Framework's side: keyword libraries, thin. The only room that imports Robot, but for Allure's listener."""

from ..system.imports import bulk_import

with bulk_import():
    from .faults import Faults
    from .library import Lineproof

__all__ = ["Faults", "Lineproof"]
