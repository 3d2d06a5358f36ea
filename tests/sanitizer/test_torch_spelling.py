"""The programs of the corpus in the spelling of torch."""

from __future__ import annotations

import re

import pytest

from support.corpus import programs
from support.torch_spelling import in_torchs_spelling

SPELLED = {program: spelled for program in programs() if (spelled := in_torchs_spelling(program.text))}


def test_torch_can_express_most_programs_and_always_both_of_a_pair() -> None:
    assert len([program for program in SPELLED if not program.right]) >= 65
    assert len([program for program in SPELLED if program.right]) >= 79
    pairs = {program.pair for program in SPELLED}
    assert {program for program in programs() if program.pair in pairs} == set(SPELLED)


def test_the_programs_that_torch_lacks_use_several_devices_or_names_of_cupy_or_numpy() -> None:
    for program in set(programs()) - set(SPELLED):
        text = program.text
        assert program.devices == 2 or re.search(r"xp\.(\w+Kernel|fuse)|\[::-1\]|numpy\.(zeros|ones)", text), (
            program.name
        )


def test_each_line_stays_in_its_place() -> None:
    for program, spelled in SPELLED.items():
        pairs = zip(program.text.splitlines(), spelled.splitlines(), strict=True)
        for number, (before, after) in enumerate(pairs, 1):
            assert mark_of(before) == mark_of(after), (program.name, number)
            assert after == "" or indent_of(before) == indent_of(after), (program.name, number)


def mark_of(line: str) -> str:
    """Return the comment behind the code of a line."""
    return line.lstrip().partition("  # ")[2]


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())


def test_no_program_of_torch_has_names_of_tcuda_or_of_cupy() -> None:
    for program, spelled in SPELLED.items():
        compile(spelled, program.name, "exec")
        assert re.search(r"\b(tcuda|xp|numpy|mmap|cudart)\b(?!\(\)\.cudaStream)", spelled) is None, program.name
        assert "import torch\n" in spelled


@pytest.mark.parametrize(
    ("line", "spelled"),
    [
        ("x = xp.zeros((2, 3)) + xp.ones(9)", 'x = torch.zeros((2, 3), device="cuda") + torch.ones(9, device="cuda")'),
        ("x = xp.full(9, float(number))", 'x = torch.full((9,), float(number), device="cuda")'),
        ('z = xp.zeros(9, dtype="complex128")', 'z = torch.zeros(9, dtype=torch.complex128, device="cuda")'),
        (
            "    x.get(stream=side, out=host, blocking=False)  # first",
            "    with torch.cuda.stream(side): host.copy_(x, non_blocking=True)  # first",
        ),
        ("x.set(host, stream=side)", "with torch.cuda.stream(side): x.copy_(host, non_blocking=True)"),
        ("cudart, one, two = tcuda.cudart(), tcuda.Stream(), 2", "one, two = torch.cuda.Stream(), 2"),
        ("# missing: tcuda.memory.record_stream(x, side)", "# missing: x.record_stream(side)"),
        ("with tcuda.graph(graph, pool=pool):", "with torch.cuda.graph(graph, pool=pool):"),
        ("part = x[::-1][:501]", None),
        ("polynomial = xp.fuse(polynomial)", None),
        ("x = torch.ones(9)", "x = torch.ones(9)"),
    ],
)
def test_a_line(line: str, spelled: str | None) -> None:
    assert in_torchs_spelling(line) == spelled
