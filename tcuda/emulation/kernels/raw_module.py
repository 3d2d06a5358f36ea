"""Modules written in CUDA C++: ``cupy.RawModule`` on emulated devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from tcuda.emulation.kernels.module import load
from tcuda.emulation.kernels.raw_kernel import RawKernel, require, restored, warn_of_jitify

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcuda.emulation.devices.memory import MemoryPointer
    from tcuda.emulation.kernels.module import Module


class RawModule:
    """A module of kernels written in CUDA C++, with the surface of ``cupy.RawModule``.

    The C++ compiler of the machine compiles the source when the module is first used. Each device has a module with
    global variables of its own, which all modules of the same source share.

    Args:
        code: The source.
        path: A file of compiled code, which emulated devices cannot load.
        options: The options of NVRTC.
        backend: ``"nvrtc"`` or ``"nvcc"``, whose options the module then takes.
        translate_cucomplex: No effect, because ``cuComplex.h`` needs no translation here.
        enable_cooperative_groups: Whether the blocks of a launch run at the same time, and can meet at a barrier of the
            whole grid.
        name_expressions: The instantiations of templates, and other C++ kernels, that :meth:`get_function` can find.
        jitify: Whether the source can include headers of the host, such as ``<stdint.h>``. NVRTC has no such headers.

    Attributes:
        code: The source.
        file_path: None.
        options: The options.
        backend: The compiler whose options these are.
        enable_cooperative_groups: Whether the program asked for cooperative groups.
        name_expressions: The name expressions; None if none were given.

    Raises:
        NotImplementedError: ``path`` is given.
        TypeError: Neither ``code`` nor ``path`` is given, or both are, or an argument has another type.
        ValueError: The arguments contradict each other.
    """

    __module__ = "tcuda.emulation.xp"  # where users find the class

    def __init__(
        self,
        *,
        code: str | None = None,
        path: str | None = None,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Iterable[str] | None = None,
        jitify: bool | None = None,
    ) -> None:
        warn_of_jitify(jitify)
        require(tuple, options=options)
        require(str, backend=backend)
        if (code is None) == (path is None):
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        if name_expressions is not None:
            if code is None:
                raise ValueError("need CUDA C++ code for the requested kernels")
            if backend != "nvrtc":
                raise ValueError("only nvrtc supports retrieving the mangled names for the given name expressions")
        if jitify:
            if code is None:
                raise ValueError("Jitify does not support precompiled objects")
            if backend != "nvrtc":
                raise ValueError("Jitify only supports NVRTC")
        if code is None:
            raise NotImplementedError(
                f"RawModule(path={path!r}) loads compiled code for a GPU, which emulated devices cannot run. Pass the "
                "source as code=."
            )
        require(str, code=code)
        self.code = code
        self.file_path = None
        self.options = options
        self.backend = backend
        self.enable_cooperative_groups = bool(enable_cooperative_groups)
        self.name_expressions = None if name_expressions is None else tuple(name_expressions)
        for expression in self.name_expressions or ():
            require(str, name_expressions=expression)
        self._jitify = bool(jitify)
        self._settings = {
            "translate_cucomplex": bool(translate_cucomplex),
            "enable_cooperative_groups": self.enable_cooperative_groups,
        }

    @property
    def module(self) -> Module:
        """The module on the current device."""
        return self._loaded()

    def compile(self, log_stream: TextIO | None = None) -> None:
        """Compile the module for the current device, and write the messages of the compiler to ``log_stream``.

        Args:
            log_stream: A file for the messages of the compiler; nothing is written if None.

        Example:
            >>> code = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }'
            >>> module = xp.RawModule(code=code)
            >>> module.compile()
        """
        self._loaded(log_stream)

    def get_function(self, name: str) -> RawKernel:
        """Return the kernel ``name``: a kernel declared ``extern "C"``, or one of the name expressions.

        Args:
            name: The name of the kernel, or one of the name expressions of the module.

        Raises:
            CUDADriverError: The module has no kernel of this name (500).
            CompileException: The source cannot be compiled.

        Example:
            >>> code = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }'
            >>> module = xp.RawModule(code=code)
            >>> twice = module.get_function("twice")
            >>> x = xp.ones(3, dtype="float32")
            >>> twice((1,), (3,), (x,))
            >>> x
            array([2., 2., 2.], dtype=float32)
        """
        require(str, name=name)
        names = self.name_expressions or ()
        kernel = restored(self.code, name, self.options, self.backend, self._settings, names, self._jitify)
        assert kernel.kernel is not None  # Finds errors now, as CuPy does.
        return kernel

    def get_global(self, name: str) -> MemoryPointer:
        """Return the address of the global variable ``name`` on the current device.

        Args:
            name: The name of the variable.

        Raises:
            CUDADriverError: The module has no variable of this name (500).
            CompileException: The source cannot be compiled.

        Example:
            >>> code = "__device__ float factors[2] = {2, 3};"
            >>> module = xp.RawModule(code=code)
            >>> factors = xp.ndarray((2,), "float32", module.get_global("factors"))
            >>> factors
            array([2., 3.], dtype=float32)
        """
        return self.module.get_global(name)

    def _loaded(self, log: TextIO | None = None) -> Module:
        names = self.name_expressions or ()
        return load(self.code, self.options, self.backend, names, log, jitify=self._jitify)

    def __reduce__(self) -> tuple[Any, ...]:
        return _module_of, (
            self.code,
            self.options,
            self.backend,
            self.name_expressions,
            self._settings,
            self._jitify,
        )


def _module_of(
    code: str,
    options: tuple[str, ...],
    backend: str,
    names: tuple[str, ...] | None,
    settings: dict[str, bool],
    jitify: bool,
) -> RawModule:
    module = RawModule(
        code=code, path=None, options=options, backend=backend, name_expressions=names, jitify=None, **settings
    )
    module._jitify = jitify
    return module
