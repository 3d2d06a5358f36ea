"""The Python code that computes the call of a jiterator function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda._backend import array_module
from tcuda._device import device as device_scope
from tcuda._process.lazy import backend, cuda, init
from tcuda._runtime import runtime
from tcuda.jiterator import _source
from tcuda.jiterator._dtypes import common_dtype
from tcuda.jiterator._kernels import CompiledModule
from tcuda.jiterator._layout import layout_of
from tcuda.jiterator._plan import plan_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from tcuda.jiterator._plan import Plan
    from tcuda.jiterator._signature import Signature

_SCALARS = (np.int64, np.float64, np.bool_, np.complex128)
"""The NumPy type with which each kind of scalar is passed to the kernel."""


class PythonFunction:
    """A jiterator function that computes every call in Python, and lets the core compute later calls that are alike."""

    def __init__(self, signature: Signature) -> None:
        """Make the function of ``signature``; no device is used yet."""
        init()
        self._signature = signature
        self._arrays: ModuleType = array_module(runtime())
        self._modules: dict[tuple[Any, ...], CompiledModule] = {}

    def __call__(self, inputs: Sequence[Any], scalars: Sequence[tuple[int, Any]]) -> list[Any]:
        """Return the outputs for ``inputs``."""
        index = self._device_of(inputs)
        common = common_dtype(inputs)
        plan = plan_of(
            tuple(array.shape for array in inputs),
            tuple(array.strides for array in inputs),
            tuple(array.itemsize for array in inputs),
        )
        if cuda.getDevice() == index:
            return self._computed(index, inputs, scalars, common, plan)
        with device_scope(index):
            return self._computed(index, inputs, scalars, common, plan)

    def _device_of(self, inputs: Sequence[Any]) -> int:
        """Return the index of the device that has all inputs."""
        index = -1
        for place, array in enumerate(inputs):
            if not isinstance(array, self._arrays.ndarray):
                raise RuntimeError(
                    f"input {place} is a {_described(array)}, and jiterator takes arrays of one device "
                    f"({self._arrays.__name__}.ndarray). A host array becomes one by xp.asarray(), and a number can be "
                    "a keyword argument."
                )
            own = int(array.device.id)
            if index not in (-1, own):
                raise RuntimeError(
                    f"Expected all inputs to be on the same device, but input 0 is on cuda:{index} and input {place} "
                    f"is on cuda:{own}."
                )
            index = own
        return index

    def _computed(
        self, index: int, inputs: Sequence[Any], scalars: Sequence[tuple[int, Any]], common: str, plan: Plan
    ) -> list[Any]:
        signature = self._signature
        dtype = next((array.dtype for array in inputs if array.dtype.name == common), None) or np.dtype(common)
        made = [self._arrays.ndarray(plan.made, dtype) for _ in range(signature.num_outputs)]
        if plan.size:
            kinds = tuple(kind for kind, _ in scalars)
            module = self._module(index, tuple(array.dtype.name for array in inputs), common, kinds)
            arguments: list[Any] = [np.int64(plan.size)]
            if plan.kernel != _source.CONTIGUOUS:
                arguments.append(layout_of(plan.kernel, plan.loop, len(inputs)))
            arguments += [*inputs, *made]
            arguments += [_SCALARS[kind](value) for kind, value in scalars]
            blocks = -(-plan.size // (_source.BLOCK * _source.LANES))
            backend.launch_raw(module.kernels[plan.kernel], blocks, _source.BLOCK, tuple(arguments))
            # The core compares only dtypes. If only some inputs have axes, the common dtype depends on which ones.
            if len({array.ndim == 0 for array in inputs}) == 1:
                module.teach(signature.state, index, tuple(array.dtype for array in inputs), kinds, dtype)
        return made if plan.axes is None else [output.transpose(plan.axes) for output in made]

    def _module(self, index: int, inputs: tuple[str, ...], common: str, kinds: tuple[int, ...]) -> CompiledModule:
        """Return the compiled kernels for the current device ``index`` and these types."""
        key = (index, inputs, common, kinds)
        module = self._modules.get(key)
        if module is None:
            signature = self._signature
            source = _source.source(
                signature.code, signature.kernel, inputs, common, signature.num_outputs, signature.by_reference, kinds
            )
            made = CompiledModule(self._arrays, source, signature.code, signature.kernel)
            module = self._modules.setdefault(key, made)
        return module


def _described(value: object) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ != "builtins" else kind.__qualname__
