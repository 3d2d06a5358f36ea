"""The knowledge of CuPy's kernels that the core gets while a race detector watches.

A kernel that CuPy has generated is described by its source, when CuPy loads the kernel or when the detector begins. The
PTX of a program's own kernels is made only before the first call of a kernel, because NVRTC needs a second for the PTX.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

from tcuda import _core
from tcuda._cupy import loaded_kernels
from tcuda._process import asleep
from tcuda._process.fork import call_in_child
from tcuda.sanitizer._cuda.kernel_signatures import parameter_names, signatures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tcuda._cupy.loaded_kernels import LoadedSource
    from tcuda.sanitizer._cuda.kernel_signatures import Signature


_KINDS = {"none": 0, "read": 1, "write": 2, "both": 3}
_FOR_JIT = "-DCUPY_JIT_MODE"
"""The option with which CuPy compiles the kernels of ``cupyx.jit``."""


class KernelTable(Protocol):
    """The functions of the core that take what is known of kernels."""

    def describe_kernel(
        self,
        module: int,
        name: str,
        parameters: Sequence[tuple[int, int]],
        pointers: Sequence[tuple[int, int, bool, int, int, str]],
        complete: bool,
    ) -> None:
        """Describe the kernel ``name`` of ``module``."""

    def add_ptx(self, module: int, text: str) -> None:
        """Add the PTX of ``module``."""

    def forget_module(self, module: int) -> None:
        """Forget all kernels of ``module``."""

    def uses_of_ptx(self, text: bytes) -> dict[str, Any]:
        """Return what the kernels of a PTX text do with their pointers.

        Returns:
            For each kernel the parameters, the pointers as (offset, kind, possible, label), and whether the kernel uses
            no other memory. The kind is ``"none"``, ``"read"``, ``"write"`` or ``"both"``.
        """


class KernelWatch:
    """Describes the kernels of CuPy's modules to the core.

    Args:
        table: The core.
        module_type: ``cupy.cuda.function.Module``.
        ptx_of: The function that returns the PTX of a module, or None.
        loaded: The function that is called after a module was loaded. The functions of the module may have the handles
            of functions that are gone.
    """

    def __init__(
        self,
        table: KernelTable,
        module_type: type[Any],
        ptx_of: Callable[[LoadedSource], str | None],
        loaded: Callable[[], object],
    ) -> None:
        self._table = table
        self._module_type = module_type
        self._ptx_of = ptx_of
        self._loaded = loaded
        self._lock = threading.RLock()
        self._described: dict[int, LoadedSource] = {}
        self._prepared: dict[int, LoadedSource] = {}

    def begin(self) -> None:
        """Describe the kernels of the modules that exist, and of the modules that CuPy loads from now on."""
        loaded_kernels.listen(self.describe)
        for module, source in loaded_kernels.living(self._module_type).items():
            self.describe(module, source)

    def end(self) -> None:
        """Describe no more kernels, and let the core forget the descriptions."""
        loaded_kernels.listen(None)
        with self._lock:
            for module in {*self._described, *self._prepared}:
                self._table.forget_module(module)
            self._described.clear()
            self._prepared.clear()

    def describe(self, module: int, source: LoadedSource) -> None:
        """Describe the kernels of a module as far as the source tells."""
        with self._lock:
            self._described[module] = source
            self._prepared.pop(module, None)
            self._loaded()
            known = signatures(source.text)
            for name, signature in known.items():
                self._describe(module, name, signature)
            # CuPy calls its own kernels, and the core calls its kernels, without the slot that prepares kernels.
            is_certain = all(signature.is_certain for signature in known.values())
            if source.by_core or (not is_certain and _FOR_JIT not in source.options):
                self._prepared[module] = source
                self._add_ptx(module, source)

    def prepare(self, function: Any) -> tuple[str, ...]:
        """Make the PTX of the module of ``function`` if there is none yet; return the names of the parameters.

        Args:
            function: A ``cupy.cuda.Function`` that a program is about to call.

        Returns:
            The names; empty if they are unknown.
        """
        module = function.module.ptr
        source = loaded_kernels.source_of(module)
        if source is None:
            return ()
        with self._lock:
            if self._prepared.get(module) is not source:
                self._prepared[module] = source
                self._add_ptx(module, source)
        names = list(parameter_names(source.text).values())
        return names[0] if len(names) == 1 else ()

    def _add_ptx(self, module: int, source: LoadedSource) -> None:
        known = signatures(source.text)
        if known and all(signature.is_certain for signature in known.values()):
            return
        text = self._ptx_of(source)
        if text is None:
            return
        self._table.add_ptx(module, text)
        uncertain = {name: signature for name, signature in known.items() if not signature.is_certain}
        if uncertain:
            kinds = self._table.uses_of_ptx(text.encode())
            for name, signature in uncertain.items():
                if name in kinds:
                    _, pointers, complete = kinds[name]
                    if not complete:
                        continue
                    refined = {offset: _KINDS[kind] for offset, kind, possible, *_ in pointers if not possible}
                    self._describe(module, name, signature.refined(refined))

    def _describe(self, module: int, name: str, signature: Signature) -> None:
        pointers = [
            (pointer.offset, pointer.kind, pointer.possible, pointer.dimensions, pointer.itemsize, pointer.label)
            for pointer in signature.pointers
        ]
        self._table.describe_kernel(module, name, signature.parameters, pointers, True)


_lock = threading.RLock()
_watch: KernelWatch | None = None


def begin(cupy: Any, table: Any = _core) -> None:
    """Tell the core of the kernels of ``cupy``, and of the arrays that programs give to raw kernels."""
    global _watch
    from tcuda.sanitizer._cuda.kernel_ptx import ptx_of

    with _lock:
        if _watch is not None:
            return
        loaded_kernels.follow(cupy)  # the detector may begin before tcuda takes CuPy over
        function = cupy.cuda.function
        _watch = KernelWatch(table, function.Module, ptx_of, _core.forget_prepared_calls)
        try:
            _watch.begin()
            _core.note_calls(function.Function, cupy.ndarray, cupy.cuda.MemoryPointer, _watch.prepare)
            for kernel_type in _kernel_types(cupy):
                _core.note_stacks_of(kernel_type)
            asleep.listen(_check_calls)
        except BaseException:
            end()
            raise


def _kernel_types(cupy: Any) -> list[type[Any]]:
    """Return CuPy's types of operations that launch kernels without Python's lock."""
    reduction = getattr(getattr(cupy, "_core", None), "_reduction", None)
    types = [cupy.ufunc, cupy.ElementwiseKernel, cupy.ReductionKernel]
    simple = getattr(reduction, "_SimpleReductionKernel", None)  # private: another version may not have the type
    return [*types, simple] if isinstance(simple, type) else types


def _check_calls(some_sleep: bool) -> None:
    """Refuse the launches of CuPy's kernels with arrays that are asleep, while a pool is asleep."""
    _core.check_calls(refuse_sleeping_arguments if some_sleep else None)


def refuse_sleeping_arguments(given: tuple[tuple[Any, ...], dict[str, Any] | None]) -> None:
    """Refuse a call of a kernel that would use memory which is asleep.

    Args:
        given: The positional and the named arguments of the call. The arguments of a raw kernel are a tuple in them.

    Raises:
        RuntimeError: The memory of an argument is asleep.
    """
    positional, named = given
    asleep.refuse_asleep(_addresses_in((*positional, *(named or {}).values())))


def _addresses_in(arguments: Iterable[Any]) -> Iterator[int]:
    for argument in arguments:
        if isinstance(argument, (tuple, list)):
            yield from _addresses_in(argument)
            continue
        pointer = getattr(argument, "data", argument)
        address = getattr(pointer, "ptr", None)
        if isinstance(address, int) and hasattr(pointer, "mem"):
            yield address


def end() -> None:
    """Tell the core no more of kernels and their arrays; a second call does nothing."""
    global _watch
    with _lock:
        asleep.listen(None)
        _core.check_calls(None)
        _core.stop_noting_stacks()
        _core.stop_noting_calls()
        watch, _watch = _watch, None
        if watch is not None:
            watch.end()


def _forget_in_child() -> None:
    global _lock, _watch
    _lock = threading.RLock()  # another thread of the parent may have held the lock
    _watch = None
    _core.stop_noting_stacks()
    _core.stop_noting_calls()


call_in_child(_forget_in_child)
