"""The examples of the README and of the documentation run, and the reference has every name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import tcuda
import tcuda.testing
from support.folders import REPOSITORY
from support.timelines import needs_timelines

if TYPE_CHECKING:
    from support.fixture_types import RunPython

_PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
_EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


class Example(NamedTuple):
    where: str
    code: str
    printed: str | None


def examples() -> list[Example]:
    """Return the code blocks fenced as ``python``, each with the block fenced as ``text`` that may follow."""
    found = []
    for page in _PAGES:
        text = page.read_text()
        for match in _EXAMPLE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Example(f"{page.name}:{line}", *match.groups()))
    return found


def _marked(example: Example) -> Any:
    marks: list[Any] = [pytest.mark.long] if example.where.startswith("dask.md:") else []
    if "install_as_cupy" in example.code:
        marks.append(pytest.mark.emulated)
    if "profiler.trace(" in example.code:
        marks.append(needs_timelines)
    return pytest.param(example, marks=marks, id=example.where)


@pytest.mark.parametrize("example", [_marked(example) for example in examples()])
def test_an_example_runs_and_prints_what_the_page_says(example: Example, run_forked: RunPython) -> None:
    # Where the tests use some GPUs only, the variable would hide emulated devices.
    emulated = "TCUDA_EMULATED_DEVICES" in example.code
    done = run_forked(example.code, **({"CUDA_VISIBLE_DEVICES": None} if emulated else {}))
    assert done.returncode == 0, done.stderr
    if example.printed is not None:
        assert done.stdout.strip() == example.printed.strip()


def test_the_pages_have_examples() -> None:
    with_examples = {example.where.partition(":")[0] for example in examples()}
    expected = {
        "README.md",
        "coming-from-torch.md",
        "coming-from-cupy.md",
        "emulation.md",
        "errors.md",
        "kernels.md",
        "testing.md",
    }
    assert with_examples >= expected | {"several-devices.md"}


def test_the_reference_has_every_public_name() -> None:
    pages = "\n".join(page.read_text() for page in (REPOSITORY / "docs" / "api").glob("*.md"))
    shown = set(re.findall(r"^(?:::: |<!-- reference: )tcuda\.(\S+)", pages, re.MULTILINE))
    modules = {"comm", "graphs", "jiterator", "memory", "nccl", "nvtx", "profiler", "random", "sanitizer", "streams"}
    names = {name for name in tcuda.__all__ if name not in modules | {"__version__", "accelerator"}}
    assert names <= shown
    assert {f"streams.{name}" for name in ("StreamLike", "SupportsCudaStream")} <= shown
    assert {f"nccl.{name}" for name in tcuda.nccl.__all__} <= shown
    assert {f"nvtx.{name}" for name in tcuda.nvtx.__all__} <= shown
    assert {f"profiler.{name}" for name in tcuda.profiler.__all__} <= shown
    assert {f"comm.{name}" for name in tcuda.comm.__all__} <= shown
    same = {"accelerator.graphs", "accelerator.memory", "accelerator.random"}
    same |= {f"accelerator.{name}" for name in ("device_count", "empty_cache", "empty_host_cache")}
    assert {f"accelerator.{name}" for name in tcuda.accelerator.__all__} <= shown | same
    assert {f"sanitizer.{name}" for name in tcuda.sanitizer.__all__} <= shown | {"sanitizer.CUDASanitizerErrors"}
    assert {f"testing.{name}" for name in tcuda.testing.__all__} <= shown
    assert set(tcuda.memory.__all__) <= {name.removeprefix("memory.") for name in shown}
