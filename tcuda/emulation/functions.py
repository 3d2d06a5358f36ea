"""The functions of the catalogue, made of NumPy's: each kind of them by one rule."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation import capture, catalogue, creation, flops, indexing, kernel
from tcuda.emulation.operands import Operands
from tcuda.emulation.ufunc import require_operands, ufunc

if TYPE_CHECKING:
    from types import ModuleType

Function = Callable[..., Any]


def _viewing(function: Function) -> Function:
    def view(*args: Any, **kwargs: Any) -> Any:
        require_operands(args[:1])
        return kernel.view(function, args, kwargs)

    return view


def _computing(arrays: int) -> Callable[[Function], Function]:
    """Return what makes functions for devices of NumPy's whose first ``arrays`` arguments are arrays or scalars."""

    def emulate(function: Function) -> Function:
        estimate = flops.ESTIMATES.get(function)

        def compute(*args: Any, **kwargs: Any) -> Any:
            require_operands([argument for argument in args[:arrays] if argument is not None])
            return kernel.call(function, args, kwargs, flops=estimate)

        return compute

    return emulate


def _indexed(function: Function) -> Function:
    place = catalogue.INDEXED[function.__name__]

    def compute(*args: Any, **kwargs: Any) -> Any:
        return kernel.call(function, _with_indices(args, place), kwargs)

    return compute


def _sorting(function: Function) -> Function:
    def sort(a: Any, axis: int | None = -1, kind: str | None = None) -> Any:
        if kind not in (None, "stable"):
            raise ValueError(f"kind can only be None or 'stable', not {kind!r}")
        require_operands([a])
        return kernel.call(function, (a,), {"axis": axis, "kind": "stable"})

    return sort


def _writing(function: Function) -> Function:
    def write(*args: Any, **kwargs: Any) -> None:
        kernel.modify(function, args, kwargs)

    return write


def _writing_indexed(function: Function) -> Function:
    place = catalogue.WRITING_INDEXED[function.__name__]

    def write(*args: Any, **kwargs: Any) -> None:
        kernel.modify(function, _with_indices(args, place), kwargs)

    return write


def _asking(function: Function) -> Function:
    def ask(*args: Any, **kwargs: Any) -> Any:
        arguments, options = Operands().take(args, kwargs)
        return function(*arguments, **options)

    return ask


def _with_indices(args: tuple[Any, ...], place: int) -> tuple[Any, ...]:
    """Return ``args`` with the indices among them on the device."""
    return tuple(
        indexing.array_of_indices(argument) if at == place and not isinstance(argument, slice) else argument
        for at, argument in enumerate(args)
    )


_KINDS: tuple[tuple[Iterable[str], Function], ...] = (
    (catalogue.UFUNCS, ufunc),
    (catalogue.VIEWS, _viewing),
    (catalogue.ON_ONE, _computing(1)),
    (catalogue.ON_TWO, _computing(2)),
    (catalogue.ON_THREE, _computing(3)),
    (catalogue.ON_MANY, _computing(0)),
    (catalogue.GENERATING, _computing(0)),
    (catalogue.INDEXED, _indexed),
    (catalogue.SORTING, _sorting),
    (catalogue.WRITING, _writing),
    (catalogue.WRITING_INDEXED, _writing_indexed),
    (catalogue.ASKING, _asking),
)

IMPLEMENTATIONS: dict[Any, Any] = {
    np.copy: creation.copy,
    np.empty_like: creation.empty_like,
    np.full_like: creation.full_like,
    np.ones_like: creation.ones_like,
    np.zeros_like: creation.zeros_like,
}
"""For each function of NumPy's, the one that does the same on a device: what NEP 13 and NEP 18 dispatch to."""


def emulated(module: ModuleType, names: Iterable[str], emulate: Function) -> dict[str, Any]:
    """Return, by name, the functions that ``emulate`` makes of those of ``module``, a module of NumPy's.

    Names that the NumPy in use does not have yet, or any more, are left out.
    """
    made = {}
    for name in names:
        function = getattr(module, name, None)
        if function is None:
            continue
        if function not in IMPLEMENTATIONS:  # else it has two names
            made_of_it = capture.guarded(emulate(function), name)
            if not isinstance(made_of_it, ufunc):
                functools.update_wrapper(made_of_it, function)
            IMPLEMENTATIONS[function] = made_of_it
        made[name] = IMPLEMENTATIONS[function]
    return made


def _table() -> dict[str, Any]:
    table: dict[str, Any] = {}
    for names, emulate in _KINDS:
        table.update(emulated(np, names, emulate))
    table.update({alias: table[name] for alias, name in catalogue.ALIASES.items() if name in table})
    return table


FUNCTIONS = _table()
"""The functions of :mod:`tcuda.emulation.xp` that are NumPy's on memory of a device, by name."""

LINALG = emulated(np.linalg, catalogue.LINALG, _computing(1))
"""The functions of :mod:`tcuda.emulation.linalg`, by name."""

FFT = emulated(np.fft, catalogue.FFT, _computing(1)) | emulated(np.fft, catalogue.FFT_FREQUENCIES, _computing(0))
"""The functions of :mod:`tcuda.emulation.fft`, by name."""
