"""The base class of kernels of which the user writes a part."""

from __future__ import annotations

import warnings
from typing import Any

from tcuda.emulation.kernels.names import require_name
from tcuda.emulation.kernels.parts.compiled import CompiledKernels
from tcuda.emulation.kernels.parts.parameters import parameters_of


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
