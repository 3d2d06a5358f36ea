"""The ledger, through which all arrays get their memory, and the settings of the ledger.

The ledger itself is in the core. Initialisation gives it the driver of the runtime in use, and the source of memory
that the settings name.
"""

from __future__ import annotations

import atexit
import functools
import os
import threading
from typing import TYPE_CHECKING, NoReturn

from tcuda import _core
from tcuda._base import log
from tcuda._base.errors import AcceleratorError, AllocatorSettingsError
from tcuda._process.alloc_conf import AllocConf, from_environment
from tcuda._process.fork import call_around_fork, call_in_child
from tcuda._process.lazy import _lazy_init, cuda
from tcuda._process.poison import in_use as poison_in_use
from tcuda._process.scopes import ranges_are_scopes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda._backend import Backend
    from tcuda._runtime.protocol import Runtime

_NO_CACHING = ("TCUDA_NO_MEMORY_CACHING", "PYTORCH_NO_CUDA_MEMORY_CACHING")
"""Environment variables that turn the cache off, so that compute-sanitizer sees the allocation of every array."""

_NVTX_MEMORY = "TCUDA_NVTX_MEMORY"
"""The environment variable by which a user lets a tool hear of arrays in segments."""

_PADDING = 512
"""The unused bytes behind each array while a tool hears of arrays, so that no access lands in the next array."""

_NVTX_TOOL = "NVTX_INJECTION64_PATH"
"""The environment variable in which a tool such as compute-sanitizer names its library for NVTX."""

_ledger: _core.Ledger | None = None
_conf: AllocConf | None = None
_DEFAULT_SOURCE = "native"
_settled: str | None = None
"""The source that the settings named when the ledger was made. Later settings cannot name another one."""
_limited_by_conf: set[int] = set()
"""The devices whose memory fraction comes from the settings, and not from a call of the program."""
_stack_users = 0
"""The number of parts of the program that need the stacks of allocations."""
_stack_lock = threading.RLock()  # the garbage collector may end a measurement anywhere
_hearing_tool = ""
"""The library of the tool that hears of all arrays; an empty text without such a tool."""
_chosen: tuple[str, _core.Source] | None = None
"""The name of the source that the program has chosen, and the source."""


def ledger() -> _core.Ledger:
    """Return the ledger of all devices; initialise tcuda if it is not initialised yet."""
    return _ledger or _initialized_ledger()


def _initialized_ledger() -> _core.Ledger:
    _lazy_init()
    assert _ledger is not None
    return _ledger


def ledger_if_any() -> _core.Ledger | None:
    """Return the ledger; None before tcuda is initialised."""
    return _ledger


def conf() -> AllocConf:
    """Return the settings in force.

    Raises:
        AllocatorSettingsError: An option in the environment variable is unknown, or has a value that it cannot have.
    """
    global _conf
    if _conf is None:
        _conf = from_environment(os.environ)
    return _conf


def change_conf(changed: AllocConf) -> None:
    """Use the settings ``changed`` from now on; settings that name no backend do not change the source.

    Raises:
        AllocatorSettingsError: The settings name a backend that is not in use.
    """
    global _conf
    if _settled is not None and changed.backend not in (None, _settled):
        raise AllocatorSettingsError(
            f"The backend is {_settled!r}, and cannot become {changed.backend!r} any more: it is settled when tcuda is "
            "initialised. Set TCUDA_ALLOC_CONF before that."
        )
    if _ledger is not None:
        _ledger.change_settings(changed.settings())
        _use_on_host(_ledger, changed)
        _limit(_ledger, changed, cuda.getDeviceCount())
    _conf = changed


def set_memory_fraction(device: int, fraction: float) -> None:
    """Let the allocator reserve a share of a device's memory, until later settings name another share."""
    ledger().set_memory_fraction(device, fraction)
    _limited_by_conf.discard(device)


def source_name() -> str:
    """Return the name of the source that memory comes from."""
    return _chosen[0] if _chosen is not None else _settled or conf().backend or _DEFAULT_SOURCE


def choose(name: str, source: _core.Source) -> bool:
    """Take all memory from ``source``; return False if memory has already been taken from another source."""
    global _chosen
    # make_ledger() sets the ledger and then reads the choice. This function sets the choice and then reads the ledger.
    # So neither of two threads misses what the other has set.
    before, _chosen = _chosen, (name, source)
    if _ledger is not None and not _ledger.change_source(source):
        _chosen = before
        return False
    return True


def chosen_source() -> _core.Source | None:
    """Return the source that :func:`choose` was given; None without a choice."""
    return _chosen[1] if _chosen is not None else None


def hearing_tool() -> str:
    """Return the library of the tool that hears of all arrays by ``TCUDA_NVTX_MEMORY``; an empty text without one."""
    return _hearing_tool


def want_stacks() -> None:
    """Note the stacks of live allocations until the matching :func:`release_stacks`, also without a history."""
    _count_stack_users(1)


def release_stacks() -> None:
    """End what :func:`want_stacks` has begun."""
    _count_stack_users(-1)


@functools.cache
def always_want_stacks() -> None:
    """Note the stacks of live allocations from the first call on."""
    want_stacks()


def _count_stack_users(change: int) -> None:
    global _stack_users
    with _stack_lock:
        _stack_users += change
        if _ledger is not None:
            _ledger.keep_stacks(_stack_users > 0)


def make_ledger(
    cuda: Runtime,
    backend: Backend,
    raise_out_of_memory: Callable[..., NoReturn],
    relieve: Callable[[int, int], bool],
) -> None:
    """Make the ledger unless it exists already: a step of initialisation.

    Args:
        cuda: The runtime.
        backend: The array library, which may have a source of memory.
        raise_out_of_memory: A function that the core calls for a lack of memory, with the facts as keyword arguments.
        relieve: A function that the core calls before, with the device and the size. If the function returns True, the
            core tries the allocation again.

    Raises:
        ValueError: ``TCUDA_POISON_FREED``, ``TCUDA_NVTX_MEMORY`` or ``TCUDA_MEMORY_SCOPES`` has a value that the
            variable cannot have.
    """
    global _hearing_tool, _ledger, _settled
    if _ledger is not None:
        return
    poison = poison_in_use()
    ranges_are_scopes()  # raises for a wrong value
    tool = _memory_tool()
    if tool:
        # A tool takes each segment for one allocation, so segments must not grow.
        change_conf(conf()._replace(expandable_segments=False))
    devices = cuda.getDeviceCount()
    made = _core.Ledger(
        cuda.memoryDriver(), devices, conf().settings(), raise_out_of_memory, _raise_driver_error, relieve
    )
    if tool:
        known = made.report_to_nvtx(tool)
        if known:
            made.set_padding(_PADDING)
        log.debug("The tool %s of NVTX %s of the arrays in segments.", tool, "hears" if known else "does not hear")
        tool = tool if known else ""
    source = chosen_source()
    named = conf().backend or _DEFAULT_SOURCE
    if source is None and named != _DEFAULT_SOURCE:
        source = backend.memory_source(named, made)
    if source is not None:
        made.change_source(source)
    _limit(made, conf(), devices)
    _use_on_host(made, conf())
    if poison is not None:
        made.set_poison(poison)
    made.caching = not any(os.environ.get(name) for name in _NO_CACHING)
    if _ledger is None:  # a finalizer may have made the ledger meanwhile
        _ledger, _settled, _hearing_tool = made, named, tool
        atexit.register(made.close)
        atexit.register(_core.listen_to_segments, None)
        _core.listen_to_segments(_log_segments)
    _count_stack_users(0)
    if _chosen is not None and _chosen[1] is not source:
        _ledger.change_source(_chosen[1])


def _memory_tool() -> str:
    """Return the library of a tool that shall hear of arrays in segments, by NVTX; an empty text without a tool.

    Raises:
        ValueError: ``TCUDA_NVTX_MEMORY`` has a value that the variable cannot have.
    """
    wanted = os.environ.get(_NVTX_MEMORY, "").strip()
    if wanted not in ("", "0", "1"):
        raise ValueError(f"{_NVTX_MEMORY} is {wanted!r}; write 1 or 0, or remove the variable.")
    return os.environ.get(_NVTX_TOOL, "") if wanted == "1" else ""


def _log_segments() -> None:
    """Log what came from the driver and went back; the main thread calls this function soon after that."""
    if _ledger is None:
        return
    *devices, host = _ledger.take_segment_changes()
    for device, (mapped, unmapped) in enumerate(devices):
        if mapped or unmapped:
            _log_change(f"Device {device}", mapped, unmapped, _ledger.reserved(device))
    if any(host):
        _log_change("Page-locked memory", *host, _ledger.host_statistics()["allocated_bytes.current"])


def _log_change(place: str, mapped: int, unmapped: int, reserved: int) -> None:
    parts = [f"{size / 2**20:.4g} MiB {what}" for size, what in ((mapped, "mapped"), (unmapped, "unmapped")) if size]
    log.debug("%s: %s, %.4g MiB reserved.", place, ", ".join(parts), reserved / 2**20)


def _use_on_host(ledger: _core.Ledger, conf: AllocConf) -> None:
    """Let ``ledger`` use the options of page-locked memory in ``conf``."""
    ledger.change_host_settings(
        conf.pinned_use_register, conf.pinned_threads, conf.pinned_reserve, conf.pinned_background
    )


def _limit(ledger: _core.Ledger, conf: AllocConf, count: int) -> None:
    """Limit each device's memory to the share in ``conf``; without a share, lift the limits of earlier settings."""
    if conf.memory_fraction is None:
        fraction, devices = 1.0, list(_limited_by_conf)
        _limited_by_conf.clear()
    else:
        fraction, devices = conf.memory_fraction, list(range(count))
        _limited_by_conf.update(devices)
    for device in devices:
        ledger.set_memory_fraction(device, fraction)


def _raise_driver_error(status: int, call: str) -> NoReturn:
    raise AcceleratorError(status, call)


_resting: list[_core.Ledger] = []
"""The ledgers whose thread rests, because a fork is about to happen."""


def _rest_before_fork() -> None:
    # In the middle of a question, the thread may hold a lock of the runtime. A child would wait for that lock for ever.
    if _ledger is not None:
        _ledger.begin_host_rest()
        _resting.append(_ledger)


def _go_on_after_fork() -> None:
    if _resting:
        _resting.pop().end_host_rest()


call_around_fork(_rest_before_fork, _go_on_after_fork)


def _forget_in_child() -> None:
    global _hearing_tool, _ledger, _settled, _stack_users, _stack_lock
    _resting.clear()
    _hearing_tool = ""
    _stack_users, _stack_lock = 0, threading.RLock()
    if _ledger is not None:
        _ledger.abandon()
        _ledger = _settled = None


call_in_child(_forget_in_child)
