"""The typed programs in ``tests/typed`` run. ``.ci/run types`` checks their types with mypy and pyright."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.folders import TESTS
from support.wings import imports_a_wing

if TYPE_CHECKING:
    from pathlib import Path

    from support.fixture_types import OutputOf

PROGRAMS = [
    pytest.param(program, id=program.stem, marks=[pytest.mark.wings] if imports_a_wing(program) else [])
    for program in sorted((TESTS / "typed").glob("*.py"))
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_typed_program_runs(program: Path, output_of: OutputOf) -> None:
    code = f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')"
    assert output_of(code) == "done"
