"""The published JSON Schemas of a run's records, as they are made from the records' types."""

from __future__ import annotations

import json

from lineproof.evidence.run_files import KINDS


def texts() -> dict[str, str]:
    return {f"{kind.__name__}.json": json.dumps(kind.json_schema(), indent=1) + "\n" for kind in KINDS}
