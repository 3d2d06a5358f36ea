"""The tools that replay workloads through allocators, and find the smallest limits."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from support.sizes import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def test_a_result_comes_as_soon_as_the_worker_has_it(bench_module: Callable[[str], Any], tmp_path: Path) -> None:
    """The worker waits for the test after its first result, and fails after its second."""
    replay = bench_module("replay")
    gate, worker = tmp_path / "gate", tmp_path / "worker.py"
    os.mkfifo(gate)
    worker.write_text(
        "import sys\n"
        "print('{\"number\": 1}', flush=True)\n"
        "open(sys.argv[3]).read()\n"
        "print('{\"number\": 2}')\n"
        "sys.exit('no memory')\n"
    )
    results = replay.results(worker, "tcuda", [str(gate)], busy=False)
    assert next(results) == {"number": 1}
    gate.write_text("go on")
    assert next(results) == {"number": 2}
    with pytest.raises(replay.ReplayError, match="no memory"):
        next(results)


def test_a_row_is_printed_before_a_later_replay_fails(
    bench_module: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = bench_module("limits")

    def found(*arguments: Any, **options: Any) -> Iterator[Any]:
        yield limits.Limits(
            source="tcuda",
            workload="train_convnet",
            busy=False,
            events=1000,
            bound=100 * MIB,
            smallest=110 * MIB,
            held=120 * MIB,
            seconds=(2e-3, 1e-3),
            calls=(5, 0),
        )
        raise limits.ReplayError("The second replay failed.")

    monkeypatch.setattr(limits, "limits", found)
    assert limits.main(["--source", "tcuda"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "train_convnet  idle  tcuda  1.100  1.020  1.200  2.00  5  1.00  0\nerror: The second replay failed.\n"
    )


@pytest.mark.emulated
def test_a_quick_run_searches_no_limit(bench_module: Callable[[str], Any], capsys: pytest.CaptureFixture[str]) -> None:
    limits = bench_module("limits")
    assert limits.main(["--quick", "--source", "tcuda", "--workload", "diffusion_sample", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["smallest"] is None
    assert found["held"] >= found["bound"]
    assert found["calls"][1] == 0
