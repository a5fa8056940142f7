"""variables/testbeds/lab-example.yaml shows every key, as the documentation says."""

from __future__ import annotations

import re

import pytest

from lineproof.config import Config
from lineproof.testbed.settings import HardwareSettings, RouterSettings, SideSettings, ToleranceSettings
from lineproof.testbed.trex.settings import TrexGeneratorSettings
from support.paths import ROOT

TEXT = (ROOT / "variables" / "testbeds" / "lab-example.yaml").read_text(encoding="utf-8")
GENERATOR, ROUTER, REST = re.split(r"^(?:router:|# configure:)", TEXT[TEXT.index("\ngenerator:") :], flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("model", "part"),
    [
        (HardwareSettings, TEXT),
        (TrexGeneratorSettings, GENERATOR),
        (RouterSettings, ROUTER),
        (SideSettings, REST),
        (ToleranceSettings, REST),
    ],
)
def test_the_example_shows_every_key_of_a_testbed_of_hardware(model: type[Config], part: str) -> None:
    """Set or commented out; what is below 'start', 'power' and 'lab' is in the page that the example names."""
    begins = (
        r"^ *(?:- )?(?:# *)?" if model in (HardwareSettings, TrexGeneratorSettings, RouterSettings) else r"(?<![\w.])"
    )
    missing = [key for key in model.model_fields if not re.search(rf"{begins}{key}:(?: |$)", part, re.MULTILINE)]
    assert missing == []
