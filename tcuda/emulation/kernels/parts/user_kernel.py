"""The base class of kernels of which the user writes a part."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tcuda.emulation.kernels.names import require_name
from tcuda.emulation.kernels.parts.parameters import parameters_of
from tcuda.emulation.kernels.raw_module import RawModule

if TYPE_CHECKING:
    from collections.abc import Hashable


class CompiledKernels:
    """The compiled forms of a kernel, each for some types and layouts of arguments.

    Attributes:
        codes: The source of a form for each combination of types of the arrays, as CuPy's ``cached_codes`` lists them.
    """

    def __init__(self) -> None:
        self._functions: dict[Hashable, Any] = {}
        self.codes: dict[tuple[Any, ...], str] = {}

    def find(self, key: Hashable) -> Any:
        """Return the compiled form for ``key``; None if there is none."""
        return self._functions.get(key)

    def add(self, key: Hashable, types: tuple[Any, ...], name: str, source: str, options: tuple[str, ...]) -> Any:
        """Compile ``source`` and return the kernel ``name``.

        Args:
            key: The key by which :meth:`find` finds the kernel.
            types: The types of the arrays, for :attr:`codes`.
            name: The name of the kernel in the source.
            source: The source.
            options: The options of the compiler.
        """
        function = RawModule(code=source, options=options).get_function(name)
        self.codes.setdefault(types, source)
        return self._functions.setdefault(key, function)


class UserKernel:
    """A kernel of which the user writes a part, and which is compiled for each combination of types of the arguments.

    Args:
        name: The name of the kernel.
        in_params: The inputs.
        out_params: The outputs.

    Attributes:
        name: The name of the kernel.
        in_params: The parameters of the inputs.
        out_params: The parameters of the outputs.
        nin: The number of inputs.
        nout: The number of outputs.
        nargs: The number of inputs and outputs.

    Raises:
        ValueError: ``name`` is not an identifier.
        TypeError: A string of parameters is no string, or names an unknown type.
        Exception: A string of parameters is malformed.
    """

    def __init__(self, name: str, in_params: str, out_params: str) -> None:
        require_name(name)
        self.in_params = parameters_of(in_params, True)
        self.out_params = parameters_of(out_params, False)
        self.nin = len(self.in_params)
        self.nout = len(self.out_params)
        self.nargs = self.nin + self.nout
        self.name = self.__name__ = name
        self._kernels = CompiledKernels()

    @property
    def cached_codes(self) -> dict[tuple[Any, ...], str]:
        """The sources that were compiled, by the types of the arrays."""
        codes = self._kernels.codes
        if not codes:
            warnings.warn(
                "No codes are cached because compilation is deferred until the first function call.", stacklevel=2
            )
        return dict(codes)

    @property
    def cached_code(self) -> str:
        """The first source that was compiled."""
        codes = self._kernels.codes
        if len(codes) > 1:
            warnings.warn(
                "The input types of the kernel could not be inferred. Please use `.cached_codes` instead.",
                stacklevel=2,
            )
        return next(iter(codes.values()))
