"""``tcuda info``: versions, settings and devices, for bug reports."""

from __future__ import annotations

import json
import os
import platform
from importlib import metadata
from typing import TYPE_CHECKING, Any, TypeVar

import numpy

import tcuda
from tcuda._runtime import runtime
from tcuda.cli.messages import printable
from tcuda.cli.terminal import console, memory, print_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from rich.console import Console

T = TypeVar("T")

_VARIABLES = (
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_VISIBLE_DEVICES",
    "CUPY_CUDA_PER_THREAD_DEFAULT_STREAM",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
)


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "info",
        help="show versions, settings and devices, for a bug report",
        description="Show versions, settings and devices, for a bug report.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, with sizes in bytes")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    facts = collect()
    if options.json:
        print(json.dumps(facts, indent=2))
    else:
        _show(console(), facts)


def collect() -> dict[str, Any]:
    """Return all facts that the command shows.

    The runtime is the runtime that any other call to tcuda would choose. A runtime without a device is not an error:
    ``problem`` then says why there is no device and what to do, and facts about devices are left out.

    Raises:
        ValueError: An environment variable of tcuda has an invalid value.
    """
    problem = _problem()
    return {
        "tcuda": tcuda.__version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
        "numpy": numpy.__version__,
        "cupy": _cupy(),
        **_runtime_facts(),
        "architectures": tcuda.get_arch_list(),
        "environment": _environment(os.environ),
        "devices": [_device(index) for index in range(tcuda.device_count())],
        "problem": problem,
    }


def _problem() -> str | None:
    """Return the reason why there is no device that works; None if there is one."""
    try:
        tcuda.init()
    except RuntimeError as error:
        return " ".join(str(error).split())
    return None


def _cupy() -> str | None:
    """Return the installed distributions of CuPy, without importing CuPy; more than one is a broken installation."""
    names = sorted(set(metadata.packages_distributions().get("cupy", ())))
    return ", ".join(f"{name} {metadata.version(name)}" for name in names) or None


def _runtime_facts() -> dict[str, Any]:
    chosen_by = "environment" if os.environ.get("TCUDA_RUNTIME") else "default"
    try:
        in_use = runtime()
    except RuntimeError:  # _problem() reports this error.
        return {"runtime": None, "chosen_by": chosen_by, "driver": None, "cuda": None, "allocator": None}
    return {
        "runtime": in_use.name,
        "chosen_by": chosen_by,
        "driver": _answer(lambda: _version(in_use.driverGetVersion())),
        "cuda": _answer(lambda: _version(in_use.runtimeGetVersion())),
        "allocator": tcuda.get_allocator_backend(),
    }


def _version(number: int) -> str | None:
    """Return a version number of CUDA, such as 13020, as a text such as 13.2; None for 0, which means no driver."""
    return f"{number // 1000}.{number % 1000 // 10}" if number else None


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in sorted(environ.items()) if name in _VARIABLES or name.startswith("TCUDA_")}


def _device(index: int) -> dict[str, Any]:
    """Return the facts about a device. A fact that cannot be read is None, so that a broken device is reported too."""
    properties = tcuda.get_device_properties(index)
    free, total = _answer(lambda: tcuda.mem_get_info(index)) or (None, properties.total_memory)
    return {
        "index": index,
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "total_memory": total,
        "free_memory": free,
        "driver_used_memory": _answer(lambda: tcuda.device_memory_used(index)),
        "multiprocessors": properties.multi_processor_count,
        "uuid": str(properties.uuid),
    }


def _answer(question: Callable[[], T]) -> T | None:
    try:
        return question()
    except RuntimeError:
        return None


def _show(screen: Console, facts: Mapping[str, Any]) -> None:
    environment = " ".join(f"{name}={value}" for name, value in facts["environment"].items())
    lines = {
        "tcuda": facts["tcuda"],
        "Python": facts["python"],
        "platform": facts["platform"],
        "NumPy": facts["numpy"],
        "CuPy": facts["cupy"] or "not installed",
        "runtime": f"{facts['runtime'] or 'none'}, chosen by {facts['chosen_by']}",
        "CUDA driver": facts["driver"] or "not found",
        "CUDA runtime": facts["cuda"] or "not found",
        "NVRTC targets": " ".join(facts["architectures"]) or "unknown without a device",
        "allocator": facts["allocator"] or "none",
        "environment": environment or "nothing set",
    }
    for name, value in lines.items():
        screen.print(f"{name:<14} {printable(value)}", soft_wrap=True)
    screen.print()
    if facts["problem"]:
        screen.print(f"There is no device. {printable(facts['problem'])}", soft_wrap=True)
        return
    print_table(
        screen,
        ("device", "name", "capability", "total", "free", "used (driver)", "SMs", "uuid"),
        [
            (
                str(device["index"]),
                device["name"],
                device["capability"],
                *(_size(device[key]) for key in ("total_memory", "free_memory", "driver_used_memory")),
                str(device["multiprocessors"]),
                device["uuid"],
            )
            for device in facts["devices"]
        ],
    )


def _size(size: int | None) -> str:
    return "unknown" if size is None else memory(size)
