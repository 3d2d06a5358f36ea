"""What ``conftest.py`` in the root of the repository does to each process with tests, and the number of examples."""

from __future__ import annotations

import gc
import re
from typing import TYPE_CHECKING

import tcuda
from support.folders import TESTS
from support.settings import changes, settings

if TYPE_CHECKING:
    import pytest

    from support.fixture_types import OutputOf
    from tcuda._runtime.protocol import Runtime


def test_the_garbage_collector_does_not_visit_the_tests_and_the_modules() -> None:
    assert gc.get_freeze_count() > 10_000
    tracked = {id(module) for module in gc.get_objects()}
    assert id(gc) not in tracked
    assert id(test_the_garbage_collector_does_not_visit_the_tests_and_the_modules) not in tracked


def test_the_environment_chooses_how_many_examples_tests_have(output_of: OutputOf) -> None:
    code = "from support.examples import examples; print(examples(30))"
    assert output_of(code, PYTHONPATH=str(TESTS), TCUDA_TEST_EXAMPLES="20") == "600"
    assert output_of(code, PYTHONPATH=str(TESTS), TCUDA_TEST_EXAMPLES=None) == "30"


def test_no_test_has_a_number_of_examples_of_its_own() -> None:
    numbers = {str(path): re.findall(r"max_examples=(?!examples\()", path.read_text()) for path in TESTS.rglob("*.py")}
    del numbers[__file__]
    assert not any(numbers.values())


def test_a_test_that_changes_a_setting_is_told_which(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    before = settings()
    with monkeypatch.context() as patch:
        patch.setenv("TCUDA_OF_A_TEST", "1")
        patch.setenv("CUDA_MODULE_LOADING", "LAZY")  # as torch does
        assert changes(before, settings()) == ["The environment changed: TCUDA_OF_A_TEST was None and is '1'."]
    with monkeypatch.context() as patch:
        patch.setenv("CUDA_MODULE_LOADING", "EAGER")  # as torch does at its first use of a GPU
        assert changes(before, settings()) == []
    mode = tcuda.get_sync_debug_mode()
    with tcuda.sync_debug_mode("warn"), tcuda.memory.on_out_of_memory(lambda device, size: False):
        said = changes(before, settings())
    assert [sentence.partition(" changed")[0] for sentence in said] == [
        "The debug mode of waits",
        "The callbacks of on_out_of_memory()",
        "The watcher of waits",
    ]
    assert f"{mode} before the test, and 1 now" in said[0]
    assert changes(before, settings()) == []
