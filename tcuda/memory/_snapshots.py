"""Snapshots of the memory, and the history of allocations in a snapshot."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Literal

from tcuda._base.arguments import pool_id
from tcuda._core import Stacks
from tcuda._process.device_rules import OF_MEMORY, resolve
from tcuda._process.ledger import conf, ledger, ledger_if_any

if TYPE_CHECKING:
    from tcuda._process.devices import DeviceArgument

_MOST = (1 << 64) - 1  # the largest count of the core
_MOST_BITS_SHOWN = 2000

_ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "snapshot",
    "oom",
)
_CONTEXTS = {None: Stacks.NONE, "state": Stacks.LIVE, "alloc": Stacks.ALLOCATIONS, "all": Stacks.ALL}
_requests = 0  # see history_requests()


def memory_snapshot(mempool_id: tuple[int, int] | None = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """Return the segments of all devices, and the blocks in them (``torch.cuda.memory_snapshot``).

    Args:
        mempool_id: The pool whose segments to return, such as ``MemPool.id``; all pools if None.
        include_traces: Accepted for compatibility with torch, and ignored: :func:`_snapshot` returns the traces.

    Returns:
        A dictionary for each segment, in the order of devices and addresses: ``device``, ``address``, ``total_size``,
        ``allocated_size``, ``active_size``, ``requested_size`` (bytes), ``stream`` (the handle), ``segment_type``
        (``"small"`` or ``"large"``), ``segment_pool_id``, ``is_expandable``, ``frames`` (the stack that caused it) and
        ``blocks``: ``address``, ``size``, ``requested_size``, ``state`` (``"active_allocated"``,
        ``"active_pending_free"`` or ``"inactive"``) and ``frames``. A block that was allocated in a
        :class:`tcuda.memory.scope` has ``scope``: the names from the outermost scope on, with dots between them. The
        list is empty before tcuda is initialised.

    Raises:
        TypeError: ``mempool_id`` is not the number of a pool.

    Example:
        >>> x = xp.zeros(1000, dtype="float32")
        >>> segments = tcuda.memory_snapshot()
        >>> blocks = [block for segment in segments for block in segment["blocks"]]
        >>> [block["size"] for block in blocks if block["address"] == x.data.ptr]
        [4096]
    """
    wanted = None if mempool_id is None else pool_id(mempool_id, "memory_snapshot(): mempool_id")
    known = ledger_if_any()
    if known is None:
        return []
    segments, _ = known.snapshot(wanted, False)
    return segments


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= _MOST


def _snapshot(device: DeviceArgument = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """Return a snapshot of all devices with the history (``torch.cuda.memory._snapshot``).

    Args:
        device: A device that must exist. As in torch, the snapshot always has all devices.
        augment_with_fx_traces: Accepted for compatibility with torch's compiler, and ignored.

    Returns:
        A dictionary with ``segments`` as in :func:`memory_snapshot`, ``device_traces`` (a list of events for each
        device, with the oldest event first), ``allocator_settings`` and ``external_annotations``. An event in a scope
        has ``scope``, as a block has. torch has no history of page-locked memory. In tcuda, ``host_segments`` and
        ``host_trace`` (a list of events) have the page-locked memory of the host, with the same keys. The ``device`` of
        such a segment is -1, and all streams are 0.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> x = xp.zeros(1000)
        >>> snapshot = tcuda.memory._snapshot()
        >>> snapshot["segments"] == tcuda.memory_snapshot()
        True
        >>> len(snapshot["device_traces"]) == tcuda.device_count()
        True
        >>> staging = tcuda.memory.empty_pinned(1000, "uint8")
        >>> segments = tcuda.memory._snapshot()["host_segments"]
        >>> blocks = [block for segment in segments for block in segment["blocks"]]
        >>> [block["size"] for block in blocks if block["address"] == staging.ctypes.data]
        [1024]
    """
    resolve(device, OF_MEMORY)
    segments, traces = ledger().snapshot(None, True)
    host_segments, host_trace = ledger().host_snapshot()
    settings = conf()
    return {
        "segments": segments,
        "device_traces": traces,
        "allocator_settings": {
            "PYTORCH_CUDA_ALLOC_CONF": settings.text,
            "max_split_size": settings.max_split_size,
            "garbage_collection_threshold": settings.garbage_collection_threshold,
            "expandable_segments": settings.expandable_segments,
            "pinned_num_register_threads": settings.pinned_threads,
            "release_lock_on_cudamalloc": False,
            "pinned_use_cuda_host_register": settings.pinned_use_register,
            "graph_capture_record_stream_reuse": False,
            "roundup_power2_divisions": {
                str(1 << power): divisions for power, divisions in enumerate(settings.roundup_power2_divisions)
            },
        },
        "external_annotations": [],
        "host_segments": host_segments,
        "host_trace": host_trace,
    }


def _dump_snapshot(
    filename: str | os.PathLike[str] = "dump_snapshot.pickle", augment_with_fx_traces: bool = False
) -> None:
    """Write :func:`_snapshot` to a file (``torch.cuda.memory._dump_snapshot``).

    ``tcuda memory-viz FILE`` makes a page of the file. https://pytorch.org/memory_viz shows the file too.

    Args:
        filename: The path of the file.
        augment_with_fx_traces: Accepted for compatibility with torch's compiler, and ignored.

    Raises:
        OSError: The file cannot be written.
        TypeError: ``filename`` is not a path.

    Example:
        >>> import pickle, tempfile
        >>> x = xp.zeros(1000)
        >>> with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        ...     tcuda.memory._dump_snapshot(file.name)
        ...     snapshot = pickle.load(file)
        >>> len(snapshot["segments"]) > 0
        True
    """
    import pickle  # here, because the import takes long

    filename = os.fspath(filename)
    ledger()  # raises if no device exists, before open() empties an old file
    with open(filename, "wb") as file:  # noqa: PTH123  # pathlib takes a tenth of the time to import tcuda
        pickle.dump(_snapshot(), file)


def _record_memory_history(
    enabled: Literal["state", "all"] | bool | None = "all",
    context: Literal["state", "alloc", "all"] | None = "all",
    stacks: Literal["python", "all"] = "all",
    max_entries: int = sys.maxsize,
    device: DeviceArgument = None,
    clear_history: bool = False,
    compile_context: bool = False,
    global_record_annotations: bool = False,
    skip_actions: list[str] | None = None,
    record_pinned_host_memory: bool = False,
    record_cuda: bool = True,
) -> None:
    """Record the stacks and the history of memory, or stop (``torch.cuda.memory._record_memory_history``).

    The history always has both the memory of all devices and the page-locked memory of the host.

    Args:
        enabled: ``"all"`` records the history and the stacks of live memory. ``"state"`` records the stacks of live
            memory, and the last event only. None stops the recording, and drops the history. True and False are torch's
            older spelling of ``"all"`` and None.
        context: The calls whose Python stacks are recorded. ``"all"``: every call, so each event has the stack of the
            call that caused the event. ``"alloc"``: allocations only, so a free, and a segment that is given back, have
            the stack of the allocation. ``"state"``: allocations only, so live memory has stacks, and events have no
            stacks. None: no calls. As in torch, the event of a snapshot never has a stack.
        stacks: ``"python"`` or ``"all"``. In contrast to torch, ``"all"`` records no C++ frames.
        max_entries: The number of events that the history keeps. Newer events replace the oldest events.
        device: A device that must exist. As in torch, all devices are recorded.
        clear_history: Whether to drop the history that was recorded before.
        compile_context: Accepted for compatibility with torch's compiler, and ignored.
        global_record_annotations: Accepted for compatibility with torch, and ignored.
        skip_actions: Kinds of events that are not recorded, such as ``["free_requested"]``.
        record_pinned_host_memory: Accepted for compatibility with torch, and ignored.
        record_cuda: Accepted for compatibility with torch, and ignored.

    Raises:
        RuntimeError: A word is not one of the words above, or ``device`` does not exist.
        TypeError: An argument has the wrong type, or ``max_entries`` is not an integer from 0 to 2**64 - 1.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.memory._record_memory_history(max_entries=100_000)
        >>> x = xp.zeros(1000)
        >>> events = tcuda.memory._snapshot()["device_traces"][0]
        >>> events[-1]["action"], events[-1]["size"]  # bytes
        ('alloc', 8000)
        >>> tcuda.memory._record_memory_history(None)  # stop
    """
    if enabled is True or enabled is False:
        enabled = "all" if enabled else None
    _check("enabled", enabled, (None, "state", "all"))
    _check("context", context, tuple(_CONTEXTS))
    _check("stacks", stacks, ("python", "all"))
    capacity = max_entries.__index__() if hasattr(max_entries, "__index__") else max_entries
    if not _is_count(capacity):
        # The message gives the number of bits, because Python refuses to convert thousands of digits to a str.
        long = isinstance(capacity, int) and capacity.bit_length() > _MOST_BITS_SHOWN
        got = f"one of {capacity.bit_length()} bits" if long else repr(max_entries)
        raise TypeError(f"Expected max_entries to be an integer from 0 to 2**64 - 1; got {got}.")
    if not isinstance(clear_history, bool):
        raise TypeError(f"Expected clear_history to be True or False; got {clear_history!r}.")
    if not isinstance(skip_actions, (list, tuple, set, frozenset, type(None))):
        raise TypeError(f"Expected skip_actions to be a list of actions, or None; got {skip_actions!r}.")
    skipped = 0
    for action in skip_actions or ():
        _check("skip_actions", action, _ACTIONS)
        skipped |= 1 << _ACTIONS.index(action)
    resolve(device, OF_MEMORY)
    global _requests
    _requests += 1
    if enabled is None:
        ledger().stop_history()
        return
    ledger().record_history(_CONTEXTS[context], capacity if enabled == "all" else 1, skipped, clear_history)


def history_requests() -> int:
    """Return how often the program has asked for a history, or for the end of one."""
    return _requests


def _check(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        kind = RuntimeError if isinstance(value, str) else TypeError
        raise kind(f"Expected {name} to be one of {', '.join(map(repr, allowed))}; got {value!r}.")


def _set_memory_metadata(metadata: str | dict[str, Any]) -> None:
    """Attach a text to all later events of the history (``torch.cuda.memory._set_memory_metadata``).

    Args:
        metadata: The text, which is ``user_metadata`` in the history; ``""`` for no text. A dictionary becomes its text
            in JSON.

    Raises:
        TypeError: ``metadata`` is not a text that can be encoded, or the dictionary has a value that JSON lacks.

    Example:
        >>> tcuda.memory._record_memory_history()
        >>> tcuda.memory._set_memory_metadata("epoch 1")
        >>> x = xp.zeros(1000)
        >>> tcuda.memory._snapshot()["device_traces"][0][-1]["user_metadata"]
        'epoch 1'
        >>> tcuda.memory._set_memory_metadata("")
        >>> tcuda.memory._record_memory_history(None)
    """
    if isinstance(metadata, dict):
        import json  # here, because few programs need the module

        metadata = json.dumps(metadata, separators=(",", ":"))
    if not isinstance(metadata, str) or any("\ud800" <= character <= "\udfff" for character in metadata):
        raise TypeError(f"Expected the metadata as a dict or as a str without surrogates; got {metadata!r}.")
    ledger().set_metadata(metadata)


def _memory_metadata_supported() -> bool:
    """Return whether events have the text of :func:`_set_memory_metadata`: True with every source of memory.

    torch's function (``torch.cuda.memory._memory_metadata_supported``) returns False for some sources.

    Example:
        >>> tcuda.memory._memory_metadata_supported()
        True
    """
    return True


def _get_memory_metadata() -> str:
    """Return the text of the last :func:`_set_memory_metadata` (``torch.cuda.memory._get_memory_metadata``).

    Example:
        >>> tcuda.memory._set_memory_metadata("epoch 1")
        >>> tcuda.memory._get_memory_metadata()
        'epoch 1'
        >>> tcuda.memory._set_memory_metadata("")
    """
    return ledger().metadata()
