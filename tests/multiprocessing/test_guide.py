"""The program of the guide, which needs a file because its processes import it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from support.folders import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

    from support.fixture_types import OutputOf


def test_the_program_of_the_guide_runs(output_of: OutputOf, tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "multiprocessing.md").read_text()
    match = re.search(r"^```py\n(.*?)^```\n", page, re.DOTALL | re.MULTILINE)
    assert match is not None
    program = tmp_path / "program.py"
    program.write_text(match[1] + '    print("done")\n')
    assert output_of(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')") == "done"
