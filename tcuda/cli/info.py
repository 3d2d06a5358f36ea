"""``tcuda info``: versions, settings and devices, for bug reports."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy

import tcuda
from tcuda._base.console import console, memory, print_table
from tcuda._base.messages import printable
from tcuda._base.wings import has_wing, wing_module
from tcuda._runtime import runtime

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from rich.console import Console

T = TypeVar("T")

_LIBRARIES = ("scipy", "distributed", "mpi4py", "nvidia-ml-py", "nvtx")
_VARIABLES = (
    "CC",
    "CUDA_HOME",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_PATH",
    "CUPY_ACCELERATORS",
    "CUPY_CACHE_DIR",
    "CUPY_CUDA_PER_THREAD_DEFAULT_STREAM",
    "CXX",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "TORCH_CUDA_SANITIZER",
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
        "cupy_imported": _cupy_imported(),
        **{name: _version_of(name) for name in _LIBRARIES},
        "commit": _commit(),
        **_runtime_facts(),
        "architectures": tcuda.get_arch_list(),
        "cupti": _cupti(),
        "compiler": _compiler(),
        "kernel_cache": _kernel_cache(),
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


def _cupy_imported() -> str | None:
    """Return the file of the module that ``import cupy`` imports, without the import; None without a module."""
    try:
        found = sys.modules.get("cupy") or importlib.util.find_spec("cupy")
    except (ImportError, ValueError):  # a module that a program has put there, without a specification
        return None
    if found is None:
        return None
    return getattr(found, "origin", None) or getattr(found, "__file__", None) or getattr(found, "name", None)


def _version_of(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Return the commit of the clone that tcuda runs from, marked if files have changed; None outside of a clone."""
    root = Path(tcuda.__file__).parents[1]
    if not (root / ".git").exists():
        return None
    command = ["git", "-c", "safe.directory=*", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):  # git is missing, or the folder is no clone
        return None
    return done.stdout.strip()


def _cupti() -> str | None:
    """Return CUPTI's library, with which the race detector watches CUDA; None without the library or a driver."""
    if not has_wing("sanitizer"):
        return None
    try:
        found: str | None = wing_module("sanitizer._cuda.cupti").find(runtime().driverGetVersion())
        return found
    except RuntimeError:
        return None


def _compiler() -> str | None:
    """Return the C++ compiler that compiles the kernels of emulated devices; None without one."""
    if not has_wing("emulation"):
        return None
    try:
        found = wing_module("emulation.rtc.compiler").find()
    except RuntimeError:
        return None
    return f"{' '.join(found.command)}: {found.version}"


def _kernel_cache() -> dict[str, Any]:
    """Return the folder of the compiled kernels of emulated devices, and the bytes in it."""
    folder = wing_module("emulation.rtc.cache").cache().folder if has_wing("emulation") else None
    if folder is None:
        return {"folder": None, "bytes": 0}
    files = list(folder.path.glob("*")) if folder.path.is_dir() else []
    return {"folder": str(folder.path), "bytes": sum(file.lstat().st_size for file in files if file.is_file())}


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
        "SciPy": facts["scipy"] or "not installed; emulated devices need SciPy for cupyx.scipy",
        "import cupy": facts["cupy_imported"] or "nothing to import",
        "libraries": ", ".join(f"{name} {facts[name]}" for name in _LIBRARIES[1:] if facts[name]) or "none",
        "commit": facts["commit"] or "not in a clone",
        "runtime": f"{facts['runtime'] or 'none'}, chosen by {facts['chosen_by']}",
        "CUDA driver": facts["driver"] or "not found",
        "CUDA runtime": facts["cuda"] or "not found",
        "NVRTC targets": " ".join(facts["architectures"]) or "unknown without a device",
        "CUPTI": facts["cupti"] or "not found",
        "C++ compiler": facts["compiler"] or "not found",
        "kernel cache": f"{facts['kernel_cache']['folder'] or 'none'}, {memory(facts['kernel_cache']['bytes'])}",
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
