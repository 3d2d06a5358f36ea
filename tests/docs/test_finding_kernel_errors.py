"""The page on errors in kernels shows what its commands print."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from support.environments import environment
from support.folders import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.emulated

PAGE = (REPOSITORY / "docs" / "finding-kernel-errors.md").read_text(encoding="utf-8")
PROGRAM = re.compile(r"^```py\n(from tcuda .*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(
    r"^```sh\ntcuda (sanitize --kernels (\w+)\.py)\n```\n\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE
)


class Example(NamedTuple):
    name: str
    program: str
    command: str
    printed: str


def examples() -> list[Example]:
    """Return the programs of the page, each with its command and what the command prints."""
    programs, commands = PROGRAM.findall(PAGE), COMMAND.findall(PAGE)
    return [
        Example(name, program, command, printed)
        for program, (command, name, printed) in zip(programs, commands, strict=True)
    ]


RIGHT = {
    "reverse": ("    x[threadIdx.x] = part", "    __syncthreads();\n    x[threadIdx.x] = part"),
    "total": ("out[0] += x[blockIdx.x * blockDim.x + threadIdx.x]", "atomicAdd(&out[0], x[threadIdx.x])"),
    "last": (
        "        is_last = atomicAdd(count, 1) == gridDim.x - 1;\n",
        "        __threadfence();\n        is_last = atomicAdd(count, 1) == gridDim.x - 1;\n        __threadfence();\n",
    ),
}
"""What the page says about the fix: a text of the program, and the text that takes its place."""


def run(example: Example, program: str, folder: Path) -> tuple[int, str]:
    """Run the command of an example on a program, and return the exit status and the output."""
    (folder / f"{example.name}.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "tcuda", *example.command.split()],
        cwd=folder,
        env=environment(TCUDA_RUNTIME="emulated"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout.strip()


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_the_command_finds_what_the_page_says(example: Example, tmp_path: Path) -> None:
    assert run(example, example.program, tmp_path) == (1, example.printed.strip())


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_the_fix_of_the_page_is_right(example: Example, tmp_path: Path) -> None:
    wrong, right = RIGHT[example.name]
    assert example.program.count(wrong) == 1
    status, printed = run(example, example.program.replace(wrong, right), tmp_path)
    assert status == 0, printed


def test_the_page_has_an_example_of_each_mistake() -> None:
    assert [example.name for example in examples()] == [*RIGHT]
