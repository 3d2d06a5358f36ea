"""Generators for CuPy's arrays."""

from __future__ import annotations

import copyreg
from typing import TYPE_CHECKING, Any

import cupy
from cupy.random import _generator as cupy_random

from tcuda import _core
from tcuda._base.errors import AcceleratorError
from tcuda._base.statuses import Status
from tcuda._cupy import random_kernels, takeover
from tcuda._process.lazy import backend, cuda
from tcuda.random._draws import Draws
from tcuda.random._states import pickled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from tcuda.random._draws import Shape
    from tcuda.random._generator import Generator


class DeviceGenerator(Draws, cupy.random.RandomState):  # type: ignore[misc]
    """A generator that returns arrays of CuPy; ``RandomState`` documents the distributions.

    ``RandomState.__init__`` is not called, because it would make a generator of cuRAND, which is not used here.
    """

    xp = cupy

    def _fill_reals(self, out: cupy.ndarray, numbers: str, rule: str, first: float, second: float) -> None:
        fill = random_kernels.real(numbers, rule, out.dtype.char, self._index).fill_reals
        if status := fill(self._philox, backend.current_stream().ptr, out.data.ptr, out.size, first, second):
            if status == Status.STREAM_CAPTURE_UNSUPPORTED:
                state = self._captured_state()
                kernel = random_kernels.real(numbers, rule, out.dtype.char, self._index, captured=True)
                self._fill(kernel.capture_reals, state, out, first, second)
            else:
                self._try_again(status, fill, out, first, second)

    def _fill_integers(self, out: cupy.ndarray, bits: int, low: int, range: int) -> None:
        fill = random_kernels.integer(bits, out.dtype.char, self._index).fill_integers
        if status := fill(self._philox, backend.current_stream().ptr, out.data.ptr, out.size, low, range):
            if status == Status.STREAM_CAPTURE_UNSUPPORTED:
                state = self._captured_state()
                kernel = random_kernels.integer(bits, out.dtype.char, self._index, captured=True)
                self._fill(kernel.capture_integers, state, out, low, range)
            else:
                self._try_again(status, fill, out, low, range)

    def _try_again(self, status: int, fill: Callable[..., int], out: cupy.ndarray, *parameters: float) -> None:
        """Make the context, which a new thread may lack, and fill ``out``; raise an error for any other failure."""
        if status != Status.DEVICE_UNINITIALIZED:
            raise AcceleratorError(status, "cuLaunchKernel")
        cuda.free(0)
        self._fill(fill, self._philox, out, *parameters)

    def _fill(self, fill: Callable[..., int], state: Any, out: cupy.ndarray, *parameters: float) -> None:
        if status := fill(state, backend.current_stream().ptr, out.data.ptr, out.size, *parameters):
            raise AcceleratorError(status, "cuLaunchKernel")

    def _new_captured_state(self) -> _core.CapturedState:
        words = cupy.empty(2, cupy.uint64)
        return _core.CapturedState(self._philox, random_kernels.put(self._index), words.data.ptr, words)

    def _uniform_between(self, low: Any, high: Any, size: Shape, dtype: npt.DTypeLike) -> cupy.ndarray:
        return cupy.random.RandomState.uniform(self, low, high, size, dtype)

    def _integers_between(self, low: Any, high: Any, size: Shape, dtype: npt.DTypeLike) -> cupy.ndarray:
        return cupy.random.RandomState.randint(self, low, high, size, dtype)


def _pickled_generator(generator: Any) -> tuple[Any, ...]:
    return cupy.random.Generator, (generator.bit_generator,)


def install(generators: Iterable[Generator]) -> None:
    """Let the functions of ``cupy.random`` draw from ``generators``, each on its own device.

    A generator of tcuda takes over the seed of the generator that CuPy has made before, because a program may call
    ``cupy.random.seed`` before it uses tcuda. CuPy's bit generators, whose state is on the device, can be pickled then.
    Nothing is done if the environment forbids to change CuPy.
    """
    if not takeover.is_allowed():
        return
    for kind in (cupy.random.XORWOW, cupy.random.MRG32k3a, cupy.random.Philox4x3210):
        copyreg.pickle(kind, pickled)
    copyreg.pickle(cupy.random.Generator, _pickled_generator)
    # set_random_state() is not used: it needs the device to be current, and making a device current makes its context.
    states = cupy_random._random_states
    for generator in generators:
        index = generator.device.index
        if index in states:
            generator.manual_seed(states[index]._rk_seed)
        states[index] = generator
