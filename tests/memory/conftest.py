"""The fixtures of the tests of memory."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.folders import DATA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from support.fixture_types import HoldAtMost
    from tcuda._runtime.protocol import Runtime


@pytest.fixture
def hold_at_most(runtime: Runtime) -> HoldAtMost:
    """Limit the allocator to ``more`` bytes and 4 KiB above its reserved memory in a scope; yield the limit."""
    import tcuda

    @contextlib.contextmanager
    def limited(more: int, device: int = 0) -> Iterator[int]:
        tcuda.empty_cache()
        _, total = tcuda.mem_get_info(device)
        before = tcuda.get_per_process_memory_fraction(device)
        fraction = (tcuda.memory_reserved(device) + more + 4096) / total
        tcuda.set_per_process_memory_fraction(fraction, device)
        try:
            yield int(fraction * total)
        finally:
            tcuda.set_per_process_memory_fraction(before, device)

    return limited


@pytest.fixture
def alloc_settings(runtime: Runtime) -> Callable[[str], contextlib.AbstractContextManager[None]]:
    """Change the settings of the allocator in a scope."""
    from tcuda._process import ledger
    from tcuda.memory import _set_allocator_settings

    @contextlib.contextmanager
    def changed(text: str) -> Iterator[None]:
        before = ledger.conf()
        _set_allocator_settings(text)
        try:
            yield
        finally:
            ledger.change_conf(before)

    return changed


@pytest.fixture(scope="session")
def torch_memory() -> dict[str, Any]:
    """The facts about memory that were recorded with torch."""
    facts: dict[str, Any] = json.loads((DATA / "torch_memory.json").read_text())
    for keys in ("host_memory_stats_keys", "memory_stats_keys"):
        split = [row.rpartition(": ") for row in facts[keys]]  # such as "active.all: allocated current"
        facts[keys] = [f"{start}.{end}" if start else end for start, _, ends in split for end in ends.split()]
    return facts


@pytest.fixture(scope="session")
def plugged() -> ModuleType:
    """The module ``tests/data/plugged.py``; the programs of tests import it too."""
    spec = importlib.util.spec_from_file_location("plugged", DATA / "plugged.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["plugged"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def no_history_left(runtime: Runtime) -> Iterator[None]:
    """Switch the history off before and after the test."""
    import tcuda
    from tcuda.memory import _record_memory_history

    _record_memory_history(None)
    yield
    _record_memory_history(None)
    tcuda.memory._set_memory_metadata("")


@pytest.fixture
def statistics_of_no_scope(runtime: Runtime) -> Iterator[None]:
    """Let the statistics forget the scopes of other tests before the test, and of the test after it."""
    import tcuda

    def forget() -> None:
        for device in range(tcuda.device_count()):
            tcuda.reset_peak_memory_stats(device)
            tcuda.reset_accumulated_memory_stats(device)

    forget()
    yield
    forget()
