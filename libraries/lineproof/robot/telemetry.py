"""The keyword that reads the router under load, after a verdict."""

from __future__ import annotations

from typing import Literal

from robot.api import logger
from robot.api.deco import keyword

from ..core.rule import Ruling
from ..core.trial import Load
from ..core.under_load import UnderLoad
from ..core.verdict import Verdict
from ..errors import LineproofError
from ..evidence import allure
from ..evidence.plots import svg_image
from ..evidence.tables import html_page
from ..evidence.under_load_record import under_load_fragment
from ..session.under_load import read_under_load
from .shared import Component


class TelemetryKeywords(Component):
    """Reads the router while traffic flows, in trials that no verdict rests on."""

    @keyword(tags=["evidence"])
    def read_router_under_load(
        self, verdict: Verdict, when: Literal["never", "on failure", "always"] = "on failure"
    ) -> list[UnderLoad]:
        """Send the sentence's load for one or two seconds more, and keep what the router reports meanwhile.

        Where ``perf`` (Linux, VPP) or ``pmcstat`` (FreeBSD) is there, a flame graph follows, of seconds of its own.
        After FAIL also at the highest load of the same traffic that passed in this run, if there is one below. *when*:
        ``never``, ``on failure`` or ``always``; after INCONCLUSIVE nothing is sent. Never fails: what could not be read
        is a warning. Example:
        | ${loads} =    Read Router Under Load    ${verdict}    on failure
        """
        session = self.shared.session
        wanted = {"never": (), "on failure": (Ruling.FAIL,), "always": (Ruling.FAIL, Ruling.PASS)}[when]
        if verdict.ruling not in wanted or session.router.is_black_box or not session.router.connected:
            return []
        load = session.traffic.load_for(verdict.requirement)
        loads = {"under load": load}
        passed = self.shared.records.highest_passed(verdict.requirement)
        if verdict.ruling is Ruling.FAIL and passed is not None and passed < load.pps:
            loads["under load that passed"] = Load(passed)
        return [found for name, each in loads.items() if (found := self._read(name, verdict, each)) is not None]

    def _read(self, name: str, verdict: Verdict, load: Load) -> UnderLoad | None:
        session, recorder = self.shared.session, self.shared.records
        try:
            found = read_under_load(session, verdict.requirement, load)
            graph = recorder.keep_under_load(name, verdict.requirement, found)
        except LineproofError as error:
            logger.warn(f"the router could not be read {name}: {error}")
            return None
        title = f"The router {name}: {verdict.requirement.sentence}"
        fragment = under_load_fragment(found, title, session.simulated)
        allure.attach_html(f"The router {name}", html_page(title, fragment))
        logger.info(fragment, html=True)
        if graph:
            picture = f"Flame graph of the router {name}"
            allure.attach_svg(picture, graph)
            logger.info(svg_image(picture, graph), html=True)
        return found
