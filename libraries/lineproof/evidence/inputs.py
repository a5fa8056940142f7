"""The files that define a run, kept in its ``inputs.jsonl``: a sceptical reader needs no other copy of them.

Under ``variables/`` are the project's own files, under ``packaged/`` those that came with Lineproof; together they are
a project again. Captures and profiles in TRex's format are kept by the word that names them, when it is sent.
"""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from pydantic import TypeAdapter

from ..core.traffic.catalogue import Catalogue
from ..core.traffic.profile_schema import TrexFile
from ..core.traffic.profiles import Profile
from ..core.traffic.trex_profile import ProfileSource, TrexProfile, read_trex_profile
from ..errors import ConfigError, in_words
from ..files import read_file
from ..json_text import parse_json
from ..project import Layers, Project
from ..session.plan import Plan
from ..visible import shortened
from .run import RecordedRun
from .run_files import INPUTS

PACKAGED, CALIBRATIONS, FILES, PROGRAMS = "packaged", "calibrations", "files", "programs"

TESTBEDS = "testbeds"
"""Kind of the files that hold logins."""

REMOVED = "removed-secret"

_SECRETS = (
    re.compile(
        r"(?i)(\b(?:password|passwd|passphrase|secret|token|api[_-]?key)\b[\"']?\s*[:=]\s*[\"']?)[^\s\"'#,}\]]+"
    ),
    re.compile(r"(://[^\s/:@]+:)[^\s/@]+(?=@)"),
    re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|\Z)", re.DOTALL),
)
"""Text like a secret. A testbed file names a password's variable (``password_from``), and never holds one."""

_KEY = re.compile(r"(\bkey[\"']?\s*:\s*[\"']?)[^\s\"'#,}\]]+")
"""In a testbed file: the path of a private key, or by mistake the key."""


def without_secrets(name: str, text: str) -> str:
    """Return *text*, the content of the input *name*, with REMOVED in place of what looks like a secret.

    That is a password, a token or a private key; in a testbed's file also the path of a key.
    """
    for secret in (_KEY, *_SECRETS) if f"/{TESTBEDS}/" in name else _SECRETS:
        text = secret.sub(rf"\g<1>{REMOVED}", text)
    return text


def input_files(plan: Plan) -> dict[str, Path]:
    """Path within the inputs -> file: the files of platform, shell, testbed, goal, profiles, cards, calibration."""
    files: dict[str, Path] = {}
    # the run of a study keeps its file itself
    names = {
        "platforms": plan.platform.platform,
        TESTBEDS: plan.testbed.testbed,
        "goals": plan.goal.goal,
        "profiles": "*",
        "generators": "*",
        "programs": plan.testbed.generator_type,
        "shells": plan.command_file.shell if plan.command_file else "",
    }
    for kind, name in names.items():
        layers: Layers = getattr(plan.project, kind)
        for path in layers.glob(f"{name}.yaml"):
            files[f"{'variables' if path.parent == layers.own else PACKAGED}/{kind}/{path.name}"] = path
    if plan.calibrations is not None and plan.calibration is not None:
        name = plan.calibration.file_name
        files[f"{CALIBRATIONS}/{name}"] = plan.calibrations / name
    return dict(sorted(files.items()))


def traffic_files(profile: Profile, catalogue: Catalogue) -> dict[str, bytes]:
    """Path within the inputs -> content of the capture, or the profile in TRex's format, that *profile* is made of.

    Of the latter also the streams that it answered when it was loaded: nobody has to run it again.
    """
    word = profile.name.split()[0]
    contents: dict[str, bytes] = {}
    if word in catalogue.files:
        _, path = catalogue.files[word]
        contents[_kept_file(word, path)] = read_file(path)
    if contents and profile.program is not None:
        source, program = profile.program.source, profile.program
        kept = {**source.to_json(), "mac_dst": source.mac_dst, "answer": program.answer}
        kept |= {"pattern": program.pattern} if program.pattern else {}
        contents[f"{PROGRAMS}/{word}.json"] = json.dumps(kept).encode()
    return contents


def _kept_file(word: str, path: Path) -> str:
    return f"{FILES}/{word}/{path.name}"


def _answered(folder: Path, path: Path, entry: TrexFile) -> TrexProfile:
    """Return the profile in TRex's format of the word that *entry* defines, as it answered in the run."""
    file = folder / f"{entry.name}.json"
    content = read_file(file)
    try:
        data = parse_json(content)
        return read_trex_profile(data["answer"], TypeAdapter(ProfileSource).validate_python({**data, "path": path}))
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"is not what a profile answered: {error}", file) from None


def read_kept_plan(run: RecordedRun) -> Plan:
    """Return the plan of *run*, from the files kept in its folder and no others. Raises ConfigError."""
    environment, root = run.environment, unpacked_inputs(run)
    if not any(root.iterdir()):
        raise ConfigError(f"has no {INPUTS} with the files that define a run, and cannot be judged again", run.path)
    try:
        plan = Plan.read(
            Project(root, packaged=root / PACKAGED),
            environment.platform,
            environment.software,
            environment.testbed,
            environment.goal.goal if environment.goal else "",
            root / CALIBRATIONS,
            partial(_answered, root / PROGRAMS),
        )
    except ConfigError as error:
        raise ConfigError(str(error).replace(f"{root}/", ""), run.path / INPUTS) from None
    catalogue = plan.catalogue
    files = {word: (entry, root / _kept_file(word, path)) for word, (entry, path) in catalogue.files.items()}
    return replace(plan, catalogue=replace(catalogue, files=files))


def unpacked_inputs(run: RecordedRun) -> Path:
    """Return a folder with the inputs of *run* as files, until this process ends. Raises ConfigError."""
    root = Path(tempfile.mkdtemp(dir=_scratch().name)).resolve()
    for name, content in run.inputs.items():
        try:
            path = (root / name).resolve()
            if not path.is_relative_to(root):
                raise ValueError("it leads out of the inputs")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"has an input '{shortened(name)}' that is no file: {in_words(error)}", run.path / INPUTS
            ) from None
    return root


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="lineproof-inputs-")


def word_not_sent(catalogue: Catalogue, sentence: str) -> str:
    """Return the word of *sentence* whose capture or profile was never sent, and is not kept; "": there is none."""
    files = catalogue.files
    return next((word for word in sentence.split() if word in files and not files[word][1].exists()), "")
