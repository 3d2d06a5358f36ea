"""The tests that the usual run leaves out exist, and run if their file is named."""

from __future__ import annotations

import json

from support.folders import DATA, REPOSITORY


def test_every_long_test_exists() -> None:
    for name in json.loads((DATA / "long_tests.json").read_text()):
        file, *_, function = name.partition("[")[0].split("::")
        assert f"def {function}(" in (REPOSITORY / file).read_text(), name
