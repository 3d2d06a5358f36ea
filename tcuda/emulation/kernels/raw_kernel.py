"""Kernels written in CUDA C++: ``cupy.RawKernel`` on emulated devices."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TextIO

from tcuda._process.lazy import cuda
from tcuda.emulation.kernels.module import load
from tcuda.emulation.runtime.devices import CAPABILITY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcuda.emulation.kernels.function import Function

_ATTRIBUTES = (
    "max_threads_per_block",
    "shared_size_bytes",
    "const_size_bytes",
    "local_size_bytes",
    "num_regs",
    "ptx_version",
    "binary_version",
    "cache_mode_ca",
    "max_dynamic_shared_size_bytes",
    "preferred_shared_memory_carveout",
)
_REGISTERS = 32
_BINARY = 10 * CAPABILITY[0] + CAPABILITY[1]


class RawKernel:
    """A kernel written in CUDA C++, with the surface of ``cupy.RawKernel``.

    The C++ compiler of the machine compiles the source when the kernel is first used on a device.

    Args:
        code: The source.
        name: The name of the kernel, which is declared ``extern "C"``.
        options: The options of NVRTC.
        backend: ``"nvrtc"`` or ``"nvcc"``, whose options the kernel then takes.
        translate_cucomplex: No effect, because ``cuComplex.h`` needs no translation here.
        enable_cooperative_groups: Whether the blocks of a launch run at the same time, and can meet at a barrier of the
            whole grid.
        jitify: Whether the source can include headers of the host, such as ``<stdint.h>``. NVRTC has no such headers.

    Attributes:
        code: The source.
        name: The name of the kernel.
        options: The options.
        backend: The compiler whose options these are.
        enable_cooperative_groups: Whether the program asked for cooperative groups.
        file_path: None; a file of compiled code cannot be loaded.

    Raises:
        TypeError: An argument has another type.
    """

    __module__ = "tcuda.emulation.xp"  # where users find the class

    def __init__(
        self,
        code: str,
        name: str,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        *,
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        jitify: bool | None = None,
    ) -> None:
        warn_of_jitify(jitify)
        require(str, code=code, name=name, backend=backend)
        require(tuple, options=options)
        self.code = code
        self.name = self.__name__ = name
        self.options = options
        self.backend = backend
        self.enable_cooperative_groups = bool(enable_cooperative_groups)
        self.file_path = None
        self._names: tuple[str, ...] = ()
        self._translate_cucomplex = bool(translate_cucomplex)
        self._jitify = bool(jitify)
        self._functions: dict[int, Function] = {}

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: Sequence[Any], **kwargs: Any) -> None:
        """Launch the kernel on the current device.

        Args:
            grid: The number of blocks along each axis.
            block: The number of threads of a block along each axis.
            args: The arguments: arrays, NumPy scalars, and Python numbers, which are passed as 8 bytes.
            **kwargs: ``shared_mem``, the bytes of dynamic shared memory of a block, and ``stream``.

        Raises:
            CUDADriverError: The launch is beyond the limits (1), or the kernel fails.
            CompileException: The source cannot be compiled.
            OverflowError: An integer does not fit in its parameter.
            TypeError: An argument does not fit its parameter, or the number of arguments is wrong.

        Example:
            >>> code = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }'
            >>> twice = xp.RawKernel(code, "twice")
            >>> x = xp.ones(3, dtype="float32")
            >>> twice((1,), (3,), (x,))
            >>> x
            array([2., 2., 2.], dtype=float32)
        """
        self.kernel(grid, block, args, enable_cooperative_groups=self.enable_cooperative_groups, **kwargs)

    @property
    def kernel(self) -> Function:
        """The kernel on the current device."""
        return self._functions.get(cuda.getDevice()) or self._found()

    def compile(self, log_stream: TextIO | None = None) -> None:
        """Compile the kernel for the current device, and write the messages of the compiler to ``log_stream``.

        Args:
            log_stream: A file for the messages of the compiler; nothing is written if None.

        Example:
            >>> code = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }'
            >>> twice = xp.RawKernel(code, "twice")
            >>> twice.compile()  # so that the first launch does not compile
        """
        self._functions = {}
        self._found(log_stream)

    def _found(self, log: TextIO | None = None) -> Function:
        module = load(self.code, self.options, self.backend, self._names, log, jitify=self._jitify)
        return self._functions.setdefault(cuda.getDevice(), module.get_function(self.name))

    def __reduce__(self) -> tuple[Any, ...]:
        settings = {
            "translate_cucomplex": self._translate_cucomplex,
            "enable_cooperative_groups": self.enable_cooperative_groups,
        }
        return restored, (self.code, self.name, self.options, self.backend, settings, self._names, self._jitify)

    @property
    def attributes(self) -> dict[str, int]:
        """The attributes of the kernel by name."""
        return {name: getattr(self, name) for name in _ATTRIBUTES}

    @property
    def max_threads_per_block(self) -> int:
        """The most threads of a block, by ``__launch_bounds__`` or by the limit of the device."""
        return self.kernel.max_threads_per_block

    @property
    def shared_size_bytes(self) -> int:
        """The static shared memory of the kernel itself, without the arrays of functions that the kernel calls."""
        return self.kernel.shared_size_bytes

    @property
    def const_size_bytes(self) -> int:
        """0: the size of the constant memory is not known."""
        return self._constant(0)

    @property
    def local_size_bytes(self) -> int:
        """0: a thread has no local memory."""
        return self._constant(0)

    @property
    def num_regs(self) -> int:
        """A number of registers that is the same for every kernel."""
        return self._constant(_REGISTERS)

    @property
    def ptx_version(self) -> int:
        """The compute capability, as 10 * major + minor."""
        return self._constant(_BINARY)

    @property
    def binary_version(self) -> int:
        """The compute capability, as 10 * major + minor."""
        return self._constant(_BINARY)

    @property
    def cache_mode_ca(self) -> int:
        """0: the option ``--dlcm=ca`` has no effect."""
        return self._constant(0)

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """The most dynamic shared memory of a launch, in bytes; can be set."""
        return self.kernel.max_dynamic_shared_size_bytes

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, bytes: int) -> None:
        self.kernel.set_max_dynamic_shared_size_bytes(bytes)

    @property
    def preferred_shared_memory_carveout(self) -> int:
        """The preferred share of shared memory, in percent; can be set, without effect."""
        return self.kernel.preferred_shared_memory_carveout

    @preferred_shared_memory_carveout.setter
    def preferred_shared_memory_carveout(self, fraction: int) -> None:
        self.kernel.set_preferred_shared_memory_carveout(fraction)

    def _constant(self, value: int) -> int:
        # CuPy compiles the kernel to read an attribute, so an error in the source shows here too.
        assert self.kernel is not None
        return value


def restored(
    code: str,
    name: str,
    options: tuple[str, ...],
    backend: str,
    settings: dict[str, bool],
    names: tuple[str, ...] = (),
    jitify: bool = False,
) -> RawKernel:
    """Return the kernel ``name`` of a module with the name expressions ``names``."""
    kernel = RawKernel(code, name, options, backend, jitify=None, **settings)
    kernel._names = names
    kernel._jitify = jitify
    return kernel


def warn_of_jitify(jitify: bool | None) -> None:
    """Warn the caller of a constructor that CuPy will remove the argument ``jitify``."""
    if jitify is not None:
        warnings.warn(
            f"jitify={jitify} is deprecated: CuPy removes the argument in version 15. Leave the argument out.",
            DeprecationWarning,
            stacklevel=3,
        )


def require(kind: type, **arguments: object) -> None:
    """Refuse arguments of other types than ``kind``, with the message of CuPy.

    Raises:
        TypeError: An argument has another type.
    """
    for name, value in arguments.items():
        if type(value) is not kind:
            raise TypeError(
                f"Argument '{name}' has incorrect type (expected {kind.__name__}, got {type(value).__name__})"
            )
