"""``tcuda doctor``: runs a copy, a computation, a kernel and a capture on each device, and names the failures."""

from __future__ import annotations

import importlib.metadata
import json
import time
from typing import TYPE_CHECKING, Any

import tcuda
from tcuda._base.console import console, print_table
from tcuda._base.messages import printable
from tcuda._base.terminal import working

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

_COUNT = 1000
_SCIPY = "scipy"
_DOUBLED = """
extern "C" __global__ void doubled(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "doctor",
        help="run a kernel, a copy and a capture on each device, and say what fails",
        description="Run a kernel, a copy and a captured graph on each device, check the results, and say what fails.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, with times in seconds")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command, and return 1 if a check failed.

    The report says whether SciPy is there, also without a device. With ``--json``, a machine without a device that
    works is a ``problem`` of the object, as in ``tcuda info --json``.

    Raises:
        RuntimeError: There is no device that works, and the report is not JSON.
        ValueError: An environment variable of tcuda has an invalid value.
    """
    try:
        tcuda.init()
    except RuntimeError as error:
        if not options.json:
            _show([])
            raise
        print(json.dumps({"checks": [], _SCIPY: _scipy(), "problem": printable(str(error))}, indent=2))
        return 1
    found = [
        {"device": index, "name": tcuda.get_device_name(index), **_checked(name, check, index)}
        for index in range(tcuda.device_count())
        for name, check in _CHECKS.items()
    ]
    if options.json:
        print(json.dumps({"checks": found, _SCIPY: _scipy(), "problem": None}, indent=2))
    else:
        _show(found)
    return int(any(each["problem"] for each in found))


def _scipy() -> str | None:
    """Return the version of SciPy; None without SciPy, which is no failure, because few programs need SciPy."""
    try:
        return importlib.metadata.version(_SCIPY)
    except importlib.metadata.PackageNotFoundError:
        return None


def _checked(name: str, check: Callable[[], None], device: int) -> dict[str, Any]:
    start = time.perf_counter()
    problem = None
    try:
        with tcuda.device(device), working(f"device {device}: {name}"):
            check()
            tcuda.synchronize()
    except Exception as error:  # a check may fail in any way: each failure is a line of the report
        problem = f"{type(error).__name__}: {printable(str(error))}"
    return {"check": name, "seconds": time.perf_counter() - start, "problem": problem}


def _check_copy() -> None:
    import numpy

    sent = numpy.arange(_COUNT, dtype="float32")
    _require(sent, tcuda.xp.asarray(sent).get())


def _check_arrays() -> None:
    x = tcuda.xp.arange(_COUNT, dtype="float32")
    _require([float(_COUNT * (_COUNT - 1))], (x + x).sum().get().reshape(1))


def _check_kernel() -> None:
    x = tcuda.xp.arange(_COUNT, dtype="float32")
    y = tcuda.xp.zeros_like(x)
    tcuda.xp.RawKernel(_DOUBLED, "doubled")((_COUNT // 256 + 1,), (256,), (x, y, tcuda.xp.int32(_COUNT)))
    _require(range(0, 2 * _COUNT, 2), y.get())


def _check_capture() -> None:
    x = tcuda.xp.zeros(_COUNT, dtype="float32")
    x += 0  # the first launch may load the kernel, and a capture refuses the load
    tcuda.synchronize()
    graph = tcuda.CUDAGraph()
    with tcuda.graph(graph):
        x += 1
    for _ in range(3):
        graph.replay()
    tcuda.synchronize()
    _require([3.0] * _COUNT, x.get())


_CHECKS = {"copy": _check_copy, "arrays": _check_arrays, "kernel": _check_kernel, "capture": _check_capture}


def _require(expected: Any, found: Any) -> None:
    """Compare a result.

    Raises:
        RuntimeError: The device computed other numbers.
    """
    wrong = [place for place, (want, got) in enumerate(zip(expected, found, strict=True)) if want != got]
    if wrong:
        raise RuntimeError(f"The device computed {len(wrong)} of {len(found)} numbers wrong; the first is {wrong[0]}.")


def _show(found: list[dict[str, Any]]) -> None:
    screen = console()
    rows = [
        (str(each["device"]), each["check"], "failed" if each["problem"] else "ok", f"{1000 * each['seconds']:,.1f} ms")
        for each in found
    ]
    scipy = _scipy()
    rows.append(("", _SCIPY, "missing" if scipy is None else scipy, ""))
    print_table(screen, ("device", "check", "result", "time"), rows)
    failed = [each for each in found if each["problem"]]
    for each in failed:
        screen.print(f"The {each['check']} on device {each['device']} failed. {each['problem']}", soft_wrap=True)
    if scipy is None:
        screen.print(
            "SciPy is not installed. Emulated devices compute cupyx.scipy with SciPy: pip install scipy, or install "
            "tcuda[emulation].",
            soft_wrap=True,
        )
    if found and not failed:
        screen.print("All checks passed. The first kernel of a process also compiles.", soft_wrap=True)
