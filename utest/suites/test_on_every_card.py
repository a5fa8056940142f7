"""The main job on every card that the embedded server plays: the same verdicts, and right words of the card."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from lineproof.evidence.run import read_run
from lineproof.testbed.settings import SimulatedNic
from support import robot_run
from support.command_line import lineproof
from support.paths import ROOT
from support.served_bench import served

pytestmark = pytest.mark.slow

CARDS: tuple[str, ...] = get_args(SimulatedNic)

PORT = dict.fromkeys(CARDS, "link up at 10 Gbit/s") | {"virtio": "link up at a speed that its driver does not report"}
KNOWN = {
    "i40e": "Intel X710 (by its description): 37 Mpps per card of frames below 160 bytes; 40 Mpps per card",
    "ice": "Intel E810 at 100 Gbit/s (by its description): 58.5 Mpps per port",
    "ixgbe": "Intel 82599 family (X520, X540, X550, X552, X553) (by its driver): no limit of its own is known",
    "mlx5": "Mellanox ConnectX-5 (by its description): 132 Mpps per card",
    "virtio": "Paravirtualised card (virtio, vmxnet3, E1000) (by its driver): no limit of its own is known",
}


def project(folder: Path, card: str, platform: tuple[str, str] = ("", "")) -> Path:
    """A project with the testbed ``on_card``, and the platform's file changed (old text, new text)."""
    root = robot_run.project(folder)
    testbed = (root / "variables" / "testbeds" / "simulated.yaml").read_text(encoding="utf-8")
    own = testbed.replace("testbed: simulated", "testbed: on_card").replace("seed: 0\n", f"seed: 0\nnic: {card}\n")
    (root / "variables" / "testbeds" / "on_card.yaml").write_text(own, encoding="utf-8")
    file = root / "variables" / "platforms" / "netgate6100.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace(*platform), encoding="utf-8")
    return root


def main_job(folder: Path, *variables: str) -> list[tuple[object, ...]]:
    """Run the main job, and return test, verdict, message and figures of each sentence."""
    words = [word for variable in variables for word in ("-v", variable)]
    found = robot_run.run(folder, ROOT / "tests" / "netgate6100.robot", *words)
    assert found.status == 0 and "SIMULATED" in found.console, found.console
    (run,) = (folder / "results").iterdir()
    return [(item.test, item.verdict, item.message, item.extra["figures"]) for item in read_run(run).requirements]


@pytest.fixture(scope="module")
def without_card(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[object, ...]]:
    return main_job(tmp_path_factory.mktemp("default"))


@pytest.mark.parametrize("card", CARDS)
def test_the_nine_sentences_have_the_same_verdicts(
    tmp_path: Path, card: str, without_card: list[tuple[object, ...]]
) -> None:
    root = project(tmp_path, card)
    assert main_job(tmp_path, f"PROJECT:{root}", "TESTBED:on_card") == without_card
    assert len(without_card) == 9
    log = (tmp_path / "out" / "output.xml").read_text(encoding="utf-8")
    assert "which lost frames do not explain" not in log
    assert ("4 fewer: the generator's card counts no FCS of what it receives" in log) is (card == "ixgbe")


@pytest.mark.parametrize("card", CARDS)
def test_doctor_and_calibrate_say_what_the_card_is(tmp_path: Path, card: str) -> None:
    root, kept = project(tmp_path, card), tmp_path / "calibrations"
    on_card = ("on_card", "--platform", "netgate6100", "--calibrations", str(kept))
    measured = lineproof(
        tmp_path, "calibrate", *on_card, "--goal", "quick", "--traffic", "1514b", "--unidirectional", cwd=root
    )
    assert measured.returncode == 0, measured.stdout + measured.stderr
    assert "kpps whole (97 % line rate); latency at least 5 µs" in measured.stdout
    done = lineproof(tmp_path, "doctor", *on_card, cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 wrong" in done.stdout
    for port in (0, 1):
        said = f"ok       port {port}: {PORT[card]}, 02:00:00:00:00:0{port + 1}, driver net_{card}\n"
        assert said in done.stdout
    # also beside a card that does not know it
    assert "ok       line rate: 10 Gbit/s by 'port_speed' of the platform, and each link shows the same" in done.stdout
    assert re.search(rf"^ok       card: {re.escape(KNOWN[card])} \(\w+\.yaml\)$", done.stdout, re.MULTILINE)
    assert re.search(r"^ok       calibration: ", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.parametrize(("software", "witness"), [("vpp", "show hardware-interfaces"), ("pfsense", "ifconfig ix0")])
def test_a_speed_that_only_the_router_knows_ends_a_run_before_any_traffic(
    tmp_path: Path, software: str, witness: str
) -> None:
    slow = project(tmp_path / "slow", "virtio", ("port_speed: 10 Gbps", "port_speed: 1 Gbps"))
    # the model's links are as slow as its platform says; the run's platform says that they are faster
    with served(tmp_path, "--testbed", "on_card", "--software", software, project=slow) as bench:
        home = bench.project(tmp_path)
        suite = robot_run.write_suite(
            tmp_path,
            "64b unidirectional ≥ 1% line rate",
            setup=f"Open Testbed For    netgate6100    software={software}    testbed=lab",
        )
        found = robot_run.run(tmp_path, suite, "-v", f"PROJECT:{home}")
        doctor = lineproof(tmp_path, "doctor", "lab", "--platform", "netgate6100", "--software", software, cwd=home)
    words = rf"'{witness}'\), and 'port_speed' of the platform 'netgate6100' says 10 Gbit/s; the generator's port 0"
    assert found.status == 1
    assert re.search(rf"runs at 1 Gbit/s \({words} runs at a speed that its driver does not", found.console), (
        found.console
    )
    assert not any(file.read_text(encoding="utf-8") for file in (tmp_path / "results").glob("*/trials.jsonl"))
    assert doctor.returncode == 1
    assert re.search(rf"^wrong    line rate: the router's .* runs at 1 Gbit/s \({words}", doctor.stdout, re.MULTILINE)
