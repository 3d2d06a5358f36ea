"""Kernels of users, compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
