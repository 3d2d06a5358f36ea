"""A module of kernels that is loaded on one device, like ``cupy.cuda.Module``."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import re
import struct
import threading
from typing import TYPE_CHECKING, TextIO, cast

from tcuda import _core
from tcuda._base.statuses import Status
from tcuda._process.lazy import cuda
from tcuda._process.ledger import always_want_stacks
from tcuda.emulation import rtc
from tcuda.emulation.devices.driver_error import CUDADriverError
from tcuda.emulation.devices.memory import ForeignBlock, MemoryPointer
from tcuda.emulation.kernels.arguments import ElementTypes, element_types
from tcuda.emulation.kernels.function import Function
from tcuda.emulation.kernels.launched_kernel import RecordedKernel
from tcuda.emulation.rtc import CompileException, constants, excerpts, global_variables, launch_bounds, shared_memory
from tcuda.emulation.rtc.shared_memory import shared_variables
from tcuda.emulation.rtc.source_lines import source_lines
from tcuda.emulation.runtime import launch_limits
from tcuda.emulation.work.numpy_work import is_watched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcuda.emulation.rtc.shared_memory import SharedVariable
    from tcuda.emulation.runtime import EmulatedRuntime

_runtime = cast("EmulatedRuntime", cuda)

_STRUCTURE = re.compile(r'\b(?:struct|union)\b|\bclass\s+\w+\s*(?:final\b\s*)?[:{<]|^\s*#\s*include\s*"', re.MULTILINE)
"""A definition of a structure, or a header of the program, which may have one."""


class Module:
    """A module on the current device, with global variables of its own.

    Args:
        library: The shared library.
        build: Builds the library again, as :func:`tcuda.emulation.rtc.build`.
        source: The source.
        names: The name expressions for which the library is built.
        checks: The checks of the kernels.
        recorded: Whether launches of ``library`` can note every access.

    Attributes:
        device: The index of the device.
        source: The source.
        mapping: For each name expression, the name by which :meth:`get_function` finds the kernel.

    Raises:
        RuntimeError: The library cannot be loaded.
    """

    def __init__(
        self,
        library: bytes,
        build: Callable[..., tuple[bytes, str]],
        source: str,
        names: tuple[str, ...],
        checks: rtc.Checks,
        *,
        recorded: bool,
    ) -> None:
        self._build = build
        self._checks = checks
        self._host = _core.EmulatedModule(library)
        self._recorded = self._host if recorded else None
        self._incomplete = False
        self.source = source
        self.device = cuda.getDevice()
        bounds = self._host.symbol(launch_bounds.SYMBOL)
        text = "" if bounds is None else ctypes.string_at(bounds[0]).decode()
        self._most_threads = launch_bounds.parsed(text)
        self._static = shared_memory.static_sizes(library)
        self._elements = element_types(self._host)
        self._globals = global_variables.variables(library, source)
        self._constants = constants.pages(library) if checks.memory and constants.QUALIFIER in source else None
        self.mapping = {name: name for name in names}
        self._functions: dict[str, Function] = {}
        self._recorded_kernels: dict[str, RecordedKernel] = {}
        self._variables: dict[str, MemoryPointer] = {}

    def get_function(self, name: str) -> Function:
        """Return the kernel ``name``.

        Raises:
            CUDADriverError: The module has no kernel of this name (500).
        """
        function = self._functions.get(name)
        if function is not None:
            return function
        # The module lists its C++ kernels under "::", because programs find them only by their symbols.
        host = None if name.startswith("::") and name not in self.mapping else self._host.function(name)
        if host is None:
            raise CUDADriverError(Status.SYMBOL_NOT_FOUND, f"cuModuleGetFunction({name!r})", self._about(name))
        return self._functions.setdefault(name, self._made(host, name))

    def _made(self, host: _core.EmulatedFunction, name: str) -> Function:
        most = self._most_threads.get(host.name, launch_limits.THREADS)
        elements = self._elements.get(host.name, ElementTypes())
        return Function(self, host, name, most, self._static.get(host.name, 0), elements, self._checks)

    def recorded(self, name: str) -> RecordedKernel | None:
        """Return the kernel ``name`` in the form whose launches note what the kernel reads and writes.

        The form is another library, which is built now if the module has no global variables. A second library would
        have global variables of its own, so a module with variables keeps the library with which it was loaded.

        Returns:
            The kernel; None if the kernels of the module have no checks.
        """
        if not self._checks.memory:
            return None
        found = self._recorded_kernels.get(name)
        if found is not None:
            return found
        if self._recorded is None and not self._globals:
            try:
                self._recorded = _core.EmulatedModule(self._build(recorded=True)[0])
            except (CompileException, RuntimeError):
                self._recorded = self._host  # A program must not fail because a detector watches.
                self._incomplete = True
        library = self._recorded or self._host
        host = library.function(name)
        assert host is not None
        complete = self._recorded is not None and not self._incomplete
        return self._recorded_kernels.setdefault(name, RecordedKernel(host, complete, self._ranges(library)))

    @functools.cached_property
    def shared(self) -> list[tuple[str, int, int]]:
        """The name, the beginning and the end of each static variable in shared memory, for the check of ``init``."""
        if not self._checks.shared or self._recorded is not self._host:
            return []
        origin = self._origin(self._host)
        static = [variable for variable in self._shared if not variable.dynamic]
        return [(each.name, origin + each.place, origin + each.place + each.size) for each in static]

    @functools.cached_property
    def _shared(self) -> list[SharedVariable]:
        return shared_variables(self._library(recorded=False), self.source)

    @functools.cached_property
    def has_padding(self) -> bool:
        """Whether the source may have structures with bytes that nobody writes."""
        return _STRUCTURE.search(self.source) is not None

    def _library(self, *, recorded: bool) -> bytes:
        """Return the library, which the cache has: a module keeps no copy, because few programs ask for lines."""
        noting = recorded or self._recorded is self._host
        return self._build(recorded=noting and not self._incomplete and not self._checks.races)[0]

    def _ranges(self, library: _core.EmulatedModule) -> list[tuple[str, int, int]]:
        """Return the name, the beginning and the end of each global variable of ``library``."""
        if not self._globals:
            return []
        origin = self._origin(library)
        return [(name, origin + place, origin + place + size) for name, place, size in self._globals]

    def _origin(self, library: _core.EmulatedModule) -> int:
        origin = library.symbol("tcuda_module")
        assert origin is not None
        return origin[0]

    def lines(self, offsets: Sequence[int], *, recorded: bool = False) -> list[tuple[str, int] | None]:
        """Return the file and the line of each place in the library; None for places that no line has made.

        Args:
            offsets: The places.
            recorded: Whether the places are in the library whose launches note every access.
        """
        try:
            return source_lines(self._library(recorded=recorded), offsets)
        except (CompileException, RuntimeError):  # The cache has lost the library, and the compiler is gone.
            return [None] * len(offsets)

    def excerpt(self, file: str, first: int, last: int) -> list[tuple[int, str]]:
        """Return the numbers and the texts of the lines of ``file``, as far as the source has them."""
        return excerpts.excerpt(self.source, rtc.FILE, file, first, last)

    def global_variables(self) -> list[tuple[str, int, int]]:
        """Return the name, the beginning and the end of each global variable."""
        return self._ranges(self._host)

    @functools.cached_property
    def constants(self) -> tuple[int, int]:
        """The beginning and the end of the pages with ``__constant__`` variables; both 0 if there are none."""
        if self._constants is None:
            return 0, 0
        begin = self._host.origin + self._constants.place
        return begin, begin + self._constants.size

    def shared_variable_at(self, address: int) -> tuple[SharedVariable, int] | None:
        """Return the variable in shared memory at ``address``, and its address; None if there is none."""
        for variable in self._shared:
            begin = self._origin(self._host) + variable.place
            if begin <= address < begin + variable.size:
                return variable, begin
        return None

    def get_global(self, name: str) -> MemoryPointer:
        """Return the address of the global variable ``name``.

        Raises:
            CUDADriverError: The module has no variable of this name (500).
        """
        variable = self._variables.get(name)
        if variable is not None:
            return variable
        found = self._variable_of_expression(name) or self._host.symbol(name)
        if found is None:
            details = f"The module has no global variable {name!r}. A variable in a namespace has a mangled name."
            raise CUDADriverError(Status.SYMBOL_NOT_FOUND, f"cuModuleGetGlobal({name!r})", details)
        ptr, size = found
        _runtime.addVariable(ptr, size, self.device)
        return self._variables.setdefault(name, MemoryPointer(ForeignBlock(ptr, size, self.device, self._host)))

    def _variable_of_expression(self, name: str) -> tuple[int, int] | None:
        """Return the address and the size of the variable that the name expression ``name`` names."""
        if name not in self.mapping:
            return None
        entry = self._host.symbol(f"{rtc.VARIABLE}{[*self.mapping].index(name)}")
        assert entry is not None  # The build adds a symbol for each name expression.
        address, size = struct.unpack("QQ", ctypes.string_at(*entry))
        return (address, size) if address else None

    def get_global_var(self, name: str) -> int:
        """Return the address of the global variable ``name`` as a number.

        Raises:
            CUDADriverError: The module has no variable of this name (500).
        """
        return self.get_global(name).ptr

    def _about(self, name: str) -> str:
        kernels = self._host.kernels
        if any(kernel.startswith("::") and f"::{kernel}".endswith(f"::{name}") for kernel in kernels):
            return (
                f"The kernel {name!r} has a mangled name, because the kernel is not declared extern "
                f'"C". Declare the kernel extern "C", or list the kernel in name_expressions of RawModule.'
            )
        known = ", ".join(kernel for kernel in kernels if not kernel.startswith("::"))
        return f"The module has no kernel {name!r}. The kernels of the module are: {known or 'none'}."


_Key = tuple[int, str, tuple[str, ...], str, tuple[str, ...], bool, rtc.Checks]
_loaded: dict[_Key, Module] = {}
_lock = threading.Lock()


def load(
    code: str,
    options: tuple[str, ...] = (),
    backend: str = "nvrtc",
    names: tuple[str, ...] = (),
    log: TextIO | None = None,
    *,
    jitify: bool = False,
) -> Module:
    """Return the module of ``code`` on the current device, which equal calls share.

    Args:
        code: The source.
        options: The options of NVRTC or nvcc.
        backend: ``"nvrtc"`` or ``"nvcc"``.
        names: The name expressions that the module must have.
        log: A file that gets the messages of the compiler.
        jitify: Whether CuPy would use Jitify, so that the source can include headers of the host.

    Raises:
        CompileException: The source has an error or an unsupported construct, or an option is wrong.
        RuntimeError: The machine has no C++ compiler, or the library cannot be loaded.
        ValueError: ``backend`` is neither ``"nvrtc"`` nor ``"nvcc"``.
    """
    checks = rtc.chosen()
    if checks.races:
        always_want_stacks()
    key = (cuda.getDevice(), code, options, backend, names, jitify, checks)
    module = _loaded.get(key)
    if module is None:
        if backend not in ("nvrtc", "nvcc"):
            raise ValueError(f"Invalid backend {backend}")
        build = functools.partial(
            rtc.build, code, options, names, backend, jitify=jitify, races=checks.races, memory=checks.memory
        )
        library, messages, recorded = _built(build, watched=checks.memory and is_watched())
        if log is not None:
            log.write(messages)
        # A library with which launches find races has a check of every access, too.
        module = Module(library, build, code, names, checks, recorded=recorded or checks.races)
        with _lock:
            module = _loaded.setdefault(key, module)
    return module


def _built(build: Callable[..., tuple[bytes, str]], *, watched: bool) -> tuple[bytes, str, bool]:
    """Return the library, the messages of the compiler, and whether launches can note every access."""
    if watched:
        with contextlib.suppress(CompileException):  # The usual library tells whether the source is wrong.
            return *build(recorded=True), True
    return *build(), False
