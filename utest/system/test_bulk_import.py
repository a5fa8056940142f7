"""Imports without a search for garbage."""

import gc

import pytest

from lineproof.generators.trex.client.__main__ import bulk_import


@pytest.mark.parametrize("enabled", [True, False])
def test_the_search_is_afterwards_as_it_was_also_after_an_error(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(ImportError), bulk_import():
            assert not gc.isenabled()
            raise ImportError
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
        gc.unfreeze()
