"""The sources of random bits for a ``Generator``: ``BitGenerator`` and its classes, as in CuPy.

As in CuPy, the state is an array of the device, which the kernels read and write. So a graph that draws from a bit
generator draws other numbers at each replay, and two streams must not draw from one bit generator at the same time. The
state and the numbers are not those of cuRAND.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda._process.lazy import _lazy_init, cuda
from tcuda.emulation.arrays.ndarray import ndarray
from tcuda.emulation.random import laws
from tcuda.emulation.work import creation, numpy_work, refusals
from tcuda.random._states import pickled

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tcuda.emulation.random.laws import Law

    Bytes = npt.NDArray[np.int8]
    Seed = int | Sequence[int] | npt.NDArray[Any] | ndarray | np.random.SeedSequence | None
    Shape = int | Sequence[int] | None

_FLOPS = 30
"""The approximate number of floating-point operations for one random number."""
_THREADS = 8 * 256
"""The number of threads for each multiprocessor that have a state of their own."""
_WORDS = 2
"""The words of 64 bits at the start of the state: the seed and the number of the next draw."""


class BitGenerator:
    """A source of random bits; the base class of the sources that ``cupy.random`` has.

    Args:
        seed: An integer, a sequence of integers, an array of integers or a ``numpy.random.SeedSequence``; an
            unpredictable seed if None.

    Raises:
        TypeError: ``seed`` has numbers that are not integers.
        ValueError: ``seed`` is negative.
    """

    __module__ = "tcuda.emulation.random"  # where users find the class

    def __init__(self, seed: Seed = None) -> None:
        _lazy_init()
        self.lock = threading.Lock()
        entropy: Any = seed.get() if isinstance(seed, ndarray) else seed
        self._seed_seq = entropy if isinstance(entropy, np.random.SeedSequence) else np.random.SeedSequence(entropy)
        self._current_device_id = cuda.getDevice()

    def random_raw(self, size: Shape = None, output: bool = True) -> ndarray | None:
        """Refuse to draw: the classes that derive from this class draw."""
        raise NotImplementedError("Not implemented in base BitGenerator")

    def draw(self, out: Any, name: str, law: Law, *parameters: Any, scratch: Sequence[Any] = ()) -> None:
        """Refuse to draw: the classes that derive from this class draw."""
        raise NotImplementedError("Not implemented in base BitGenerator")

    def _state_size(self) -> int:
        """Return the number of states, one for each thread of a kernel."""
        return 0

    def _check_device(self) -> None:
        if cuda.getDevice() != self._current_device_id:
            raise RuntimeError("This Generator state is allocated in a different device")


class _OfDevice(BitGenerator):
    """A bit generator whose state is an array of the current device.

    Args:
        seed: See :class:`BitGenerator`.
        size: The number of threads that draw at a time, each with a state of its own; the number of threads for which
            the device has room if negative.
    """

    __module__ = "tcuda.emulation.random"

    generator: int
    """The number by which CuPy's kernels tell the classes apart."""
    _bytes: int
    """The size in bytes of the state of one thread."""

    def __init__(self, seed: Seed = None, *, size: int = -1) -> None:
        super().__init__(seed)
        self._seed = self._seed_seq.generate_state(1, np.uint32)[0]
        if size < 0:
            size = _THREADS * cuda.getDeviceProperties(self._current_device_id)["multiProcessorCount"]
        self._size = size
        self._state: Any = creation.zeros(self._bytes * size, np.int8)
        if self._state.size:
            numpy_work.launch(_begin, [self._state, int(self._seed)], writes=[self._state], name="init_curand")

    def __reduce__(self) -> tuple[Any, ...]:
        return pickled(self)

    def random_raw(self, size: Shape = None, output: bool = True) -> ndarray | None:
        """Return random words of 32 bits, as an array of int32.

        Args:
            size: The shape; no axes if None.
            output: Whether to return the words.
        """
        drawn: Any = creation.zeros(() if size is None else size, np.int32)
        self.draw(drawn, "raw", laws.words)
        return drawn if output else None

    def state(self) -> int:
        """Return the address of the state.

        Raises:
            RuntimeError: The state is not on the current device.
        """
        self._check_device()
        address: int = self._state.data.ptr
        return address

    def draw(self, out: Any, name: str, law: Law, *parameters: Any, scratch: Sequence[Any] = ()) -> None:
        """Fill ``out`` with random numbers, as work of the current stream.

        Args:
            out: The array.
            name: The name of the kernel.
            law: The function that draws the numbers.
            parameters: The parameters of ``law``: numbers, types, and arrays that broadcast to the shape of ``out``.
            scratch: Further arrays that the kernel reads and writes.

        Raises:
            RuntimeError: The state is not on the current device, or a parameter is an array and the current stream
                captures.
        """
        self._check_device()
        if not (out.size and self._state.size):
            return
        reads = [parameter for parameter in parameters if isinstance(parameter, ndarray)]
        if reads:
            refusals.require_upload()  # CuPy copies the shapes and strides of the parameters to the device.
        args = [out, self._state, self.generator, self.lock, law, *parameters]
        writes = [out, self._state, *scratch]
        flops = _FLOPS * out.size
        numpy_work.launch(_draw, args, reads=[*reads, self._state, *scratch], writes=writes, flops=flops, name=name)

    def _state_size(self) -> int:
        return self._size

    def _type_size(self) -> int:
        """Return the size in bytes of the state of one thread."""
        return self._bytes


class XORWOW(_OfDevice):
    """A bit generator in the place of cuRAND's XORWOW; see :class:`BitGenerator` for the arguments."""

    __module__ = "tcuda.emulation.random"

    generator = 0
    _bytes = 48


class MRG32k3a(_OfDevice):
    """A bit generator in the place of cuRAND's MRG32k3a; see :class:`BitGenerator` for the arguments."""

    __module__ = "tcuda.emulation.random"

    generator = 1
    _bytes = 48


class Philox4x3210(_OfDevice):
    """A bit generator in the place of cuRAND's Philox4x32-10; see :class:`BitGenerator` for the arguments."""

    __module__ = "tcuda.emulation.random"

    generator = 2
    _bytes = 64


def _begin(state: Bytes, seed: int) -> None:
    state[: 8 * _WORDS].view(np.uint64)[:] = seed, 0


def _draw(
    out: npt.NDArray[Any], state: Bytes, generator: int, lock: threading.Lock, law: Law, *parameters: Any
) -> None:
    """Fill ``out`` from the stream of the next draw, and move the state to the draw after it."""
    words = state[: 8 * _WORDS].view(np.uint64)
    with lock:  # threads that use one stream do the work at the same time here, and one after the other on a GPU
        seed, number = (int(word) for word in words)
        words[1] += np.uint64(1)
    # The streams of two draws never meet, because each has 2**128 numbers.
    source = np.random.Philox(key=generator << 64 | seed, counter=number << 128)
    out[...] = law(np.random.Generator(source), out.shape, *parameters)
