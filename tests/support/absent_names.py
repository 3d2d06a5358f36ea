"""The names of ``torch.cuda`` that tcuda lacks, each with its kind in torch and the reason.

``tcuda/_base/absent.json`` has these names for the message of the ``AttributeError``. The tables in ``tests/data`` are
the source. To update the file after a change of the tables, run ``python tests/support/absent_names.py``.
"""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path

TABLE = Path(__file__).parents[2] / "tcuda" / "_base" / "absent.json"
_DATA = Path(__file__).parents[1] / "data"


def absent() -> dict[str, dict[str, str]]:
    """Return the kind and the reason for each name that tcuda lacks; members of modules and classes are left out."""
    names = json.loads((_DATA / "torch_cuda_api.json").read_text(encoding="utf-8"))["names"]
    rows = json.loads((_DATA / "differences.json").read_text(encoding="utf-8"))["rows"]
    return {
        name: {"kind": torchs["kind"], "reason": row["reason"]}
        for name, torchs in sorted(names.items())
        for row in rows
        if row["kind"] in ("absent", "later") and "." not in name
        if any(fnmatchcase(name, pattern) for pattern in row["names"])
    }


if __name__ == "__main__":
    TABLE.write_text(json.dumps(absent(), indent=2) + "\n", encoding="utf-8")
