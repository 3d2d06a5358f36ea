"""A generator of random numbers on a device."""

from __future__ import annotations

import itertools
import operator
import os
import struct
from typing import TYPE_CHECKING, Any, NoReturn

from tcuda._core import PhiloxState
from tcuda._process.captures import Capture, capture_on, captures
from tcuda._process.device_rules import OF_GENERATORS, resolve
from tcuda._process.devices import Device
from tcuda._process.lazy import backend
from tcuda.random._philox import INCREMENT, WORD

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Self

    from tcuda._process.devices import DeviceArgument

DEFAULT_SEED = 67280421310721
"""The seed of a generator that the program has not seeded, as in torch."""

_WORDS = struct.Struct("<QQ")

_MARK = 40
"""The bit of the second word of a state at which the mark begins, if the state was read in a capture."""
_IN_CAPTURE = 1
"""What the second word of such a state has in place of the lowest bits of an offset, which are 0."""
_MARKS = itertools.count(1)


class Generator:
    """A source of random numbers on a device (``torch.Generator``).

    A generator is also a ``cupy.random.RandomState``, with a method for each distribution. On emulated devices, a
    generator is a ``tcuda.xp.random.RandomState``. PyTorch has uniform, normal and integer distributions too: these
    give the same numbers as PyTorch, bit for bit, with the same seed and offset on the same GPU.

    The state of a generator is a seed and an offset. Every draw increases the offset. The state is on the host, so to
    read or change the state waits for no stream.

    Threads may share a generator: no two draws get the same numbers.

    Args:
        device: The device of the arrays that the generator makes; the current device if None. This device must be
            current at each draw.

    Raises:
        RuntimeError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Attributes:
        device: The device of the generator.

    Example:
        >>> generator = tcuda.Generator(device="cuda:0").manual_seed(42)
        >>> x = generator.standard_normal((2, 3))
        >>> state = generator.get_state()
        >>> y = generator.random_sample(4)
        >>> generator.set_state(state)
        >>> bool((generator.random_sample(4) == y).all())  # the same numbers again
        True
    """

    device: Device
    _index: int
    _philox: PhiloxState

    if TYPE_CHECKING:  # derived classes have the distributions

        def __getattr__(self, name: str) -> Any: ...

    # __new__ takes the arguments, as in torch: a subclass may have an __init__ with other arguments, and need not call
    # Generator.__init__.
    def __new__(cls, device: DeviceArgument = None) -> Self:
        self: Self = generator_on(resolve(device, OF_GENERATORS), _with_distributions(cls))
        return self

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Do nothing: ``__new__`` has used the arguments.

        Without this method, ``RandomState.__init__`` would run and make a generator of cuRAND.
        """

    def manual_seed(self, seed: int) -> Self:
        """Set the seed, and set the offset to 0 (``torch.Generator.manual_seed``).

        Args:
            seed: The seed, from -2**63 to 2**64 - 1. A negative number ``n`` stands for ``2**64 + n``.

        Returns:
            The generator.

        Raises:
            RuntimeError: ``seed`` is not an integer, or the current stream is capturing and ``seed`` differs from the
                seed of the generator.
            ValueError: ``seed`` is out of range.

        Example:
            >>> generator = tcuda.Generator().manual_seed(-1)
            >>> generator.initial_seed() == 2**64 - 1
            True
        """
        if not (type(seed) is int and 0 <= seed <= WORD):
            seed = checked_seed(seed)
        if current_capture() is not None:
            if seed != self.initial_seed():
                raise RuntimeError(
                    "Generator.manual_seed() can be called during stream capture only if new seed is the same as the "
                    "original seed: a graph draws from the seed that the generator has when it is replayed."
                )
            return self
        self._philox.write(seed, 0)
        return self

    def seed(self, seed: Any = None) -> int:
        """Set a random seed or a given seed, and set the offset to 0.

        Args:
            seed: None for a random seed (``torch.Generator.seed``), an integer from 0 to 2**64 - 1, or an array of
                NumPy from which to make a seed (``cupy.random.RandomState.seed``).

        Returns:
            The seed.

        Raises:
            TypeError: ``seed`` is not None, an integer or an array of NumPy.
            ValueError: ``seed`` is out of range.
            RuntimeError: The current stream is capturing.

        Example:
            >>> generator = tcuda.Generator()
            >>> seed = generator.seed()  # a new random seed
            >>> generator.initial_seed() == seed
            True
        """
        chosen = seed_of(seed)
        _refuse_in_capture("seed")
        self._philox.write(chosen, 0)
        return chosen

    def initial_seed(self) -> int:
        """Return the seed of the generator (``torch.Generator.initial_seed``).

        Example:
            >>> g = tcuda.Generator()
            >>> g.manual_seed(7).initial_seed()
            7
        """
        return self._philox.read()[0]

    def get_state(self) -> npt.NDArray[np.uint8]:
        """Return the state (``torch.Generator.get_state``).

        Returns:
            An array of 16 bytes (uint8) on the host: the seed and then the offset, each with the lowest byte first. If
            the current stream is capturing, the last 8 bytes stand for a place in the draws of the graph, and only
            :meth:`set_state` of this generator in the same capture accepts the state.

        Example:
            >>> state = tcuda.Generator().manual_seed(42).get_state()
            >>> state.view("uint64")  # the seed and the offset
            array([42,  0], dtype=uint64)
        """
        state = _blank()
        if captures:
            state.view("uint64")[:] = self._words()
        else:
            self._philox.store(state)
        return state

    def set_state(self, new_state: npt.NDArray[np.uint8]) -> None:
        """Set the state (``torch.Generator.set_state``).

        If the current stream is capturing, the draws of the graph go back to the place at which the state was read, in
        every replay. The state of the generator itself does not change.

        Args:
            new_state: The result of :meth:`get_state`, or of ``torch.Generator.get_state`` of a CUDA generator: 16
                bytes. The first 8 bytes alone are accepted too: they are the seed, and the offset is then 0.

        Raises:
            TypeError: ``new_state`` is not an array of bytes on the host.
            RuntimeError: ``new_state`` has another size, the offset in ``new_state`` is not a multiple of 4, or the
                current stream is capturing and ``new_state`` was not read from this generator in this capture.

        Example:
            >>> g = tcuda.Generator()
            >>> state = g.get_state()
            >>> first = g.random(3)
            >>> g.set_state(state)
            >>> bool((g.random(3) == first).all())
            True
        """
        if captures or not self._philox.load(new_state):
            self._change_to(*words_of(new_state))()

    def _words(self) -> tuple[int, int]:
        """Return the two words of :meth:`get_state`."""
        seed, offset = self._philox.read()
        capture = current_capture()
        if capture is None:
            return seed, offset
        mark = capture.marks.setdefault(self._philox, next(_MARKS))
        return seed, _marked(mark) | self._position_in(capture)

    def _change_to(self, seed: int, offset: int) -> Callable[[], object]:
        """Return a function that changes the state to the words ``seed`` and ``offset``.

        Raises:
            RuntimeError: The words are no state, or not one that can be restored here.
        """
        capture = current_capture()
        if capture is None:
            if offset % INCREMENT:
                _refuse_offset(offset)
            return lambda: self._philox.write(seed, offset)
        if seed != self._philox.read()[0]:
            raise RuntimeError(
                "Generator.set_state() can be called during stream capture only if new seed is the same as the "
                "original seed: a graph draws from the seed that the generator has when it is replayed."
            )
        mark = capture.marks.get(self._philox)
        position = -1 if mark is None else offset - _marked(mark)
        if not 0 <= position < 1 << _MARK or position % INCREMENT:
            raise RuntimeError(
                "Generator.set_state() during CUDA graph capture takes only a state that get_state() of the same "
                "generator has returned in this capture: how far any other state is from the state at a replay is not "
                "known. Save the state in the capture, or set it before the replay."
            )
        if position == self._position_in(capture):
            return lambda: None
        state = self._captured_state()
        return lambda: setattr(state, "position", position)

    def _position_in(self, capture: Capture) -> int:
        """Return how far the next draw of ``capture`` is from the offset at a replay."""
        state = capture.states.get(self._philox)
        return 0 if state is None else state.position

    def get_offset(self) -> int:
        """Return the offset (``torch.Generator.get_offset``).

        The offset is the position, in numbers of 32 bits, that all threads have reached in their subsequences.

        Raises:
            RuntimeError: The current stream is capturing.

        Example:
            >>> generator = tcuda.Generator().manual_seed(42)
            >>> generator.get_offset()
            0
            >>> x = generator.random_sample(1)
            >>> generator.get_offset()
            4
        """
        _refuse_in_capture("get_offset")
        return self._philox.read()[1]

    def set_offset(self, offset: int) -> None:
        """Set the offset and keep the seed (``torch.Generator.set_offset``).

        Args:
            offset: The offset, a multiple of 4 from 0 to 2**64 - 1.

        Raises:
            RuntimeError: ``offset`` is not an integer or not a multiple of 4, or the current stream is capturing.
            ValueError: ``offset`` is out of range.

        Example:
            >>> generator = tcuda.Generator().manual_seed(42)
            >>> generator.set_offset(8)
            >>> generator.get_offset()
            8
        """
        offset = checked_offset(offset)
        _refuse_in_capture("set_offset")
        self._philox.move_to(offset)

    def clone_state(self) -> Generator:
        """Return a new generator on the same device with a copy of the state (``torch.Generator.clone_state``).

        Raises:
            RuntimeError: The current stream is capturing.

        Example:
            >>> generator = tcuda.Generator().manual_seed(42)
            >>> clone = generator.clone_state()
            >>> bool((generator.random_sample(4) == clone.random_sample(4)).all())
            True
        """
        _refuse_in_capture("clone_state")
        clone = Generator(self.device)
        clone._philox = PhiloxState(*self._philox.read())
        return clone

    def graphsafe_get_state(self) -> Generator:
        """Return a new generator that shares the state of this generator (``torch.Generator.graphsafe_get_state``).

        A draw from either of the two generators moves the offset of both.

        Example:
            >>> generator = tcuda.Generator().manual_seed(42)
            >>> other = generator.graphsafe_get_state()
            >>> x = other.random_sample(4)
            >>> generator.get_offset() == other.get_offset() > 0  # both moved
            True
        """
        other = Generator(self.device)
        other._philox = self._philox
        return other

    def graphsafe_set_state(self, state: Generator) -> None:
        """Share the state of another generator from now on (``torch.Generator.graphsafe_set_state``).

        Args:
            state: The other generator.

        Raises:
            TypeError: ``state`` is not a generator.
            RuntimeError: ``state`` is a generator of another device.

        Example:
            >>> first, second = tcuda.Generator().manual_seed(42), tcuda.Generator()
            >>> second.graphsafe_set_state(first)
            >>> second.initial_seed()
            42
            >>> x = second.random_sample(4)
            >>> first.get_offset() == second.get_offset() > 0  # one state for both
            True
        """
        if not isinstance(state, Generator):
            raise TypeError(f"expected a Generator, but got {type(state).__name__}")
        if state.device != self.device:
            raise RuntimeError(f"Expected a '{self.device}' generator device but found '{state.device}'")
        self._philox = state._philox

    def __reduce__(self) -> tuple[Any, ...]:
        _refuse_in_capture("__reduce__")
        return _restored, (self.device.index, self._philox.read())

    def __repr__(self) -> str:
        seed, offset = self._philox.read()
        return f"<tcuda.Generator device={str(self.device)!r} seed={seed} offset={offset}>"


def default_rng(device: DeviceArgument = None, *, seed: Any = None) -> Generator:
    """Return a new generator, for code that was written for ``cupy.random.default_rng``.

    The generator has the methods of ``cupy.random.Generator``, such as ``random``, ``integers`` and
    ``standard_normal``. In contrast to a ``cupy.random.Generator``, a program can save the state of the generator, with
    :meth:`Generator.get_state` or with ``pickle``.

    Args:
        device: The device of the arrays that the generator makes; the current device if None.
        seed: None for a random seed, an integer from 0 to 2**64 - 1, or an array of NumPy from which to make a seed.

    Raises:
        RuntimeError: ``device`` does not exist.
        TypeError: ``seed`` is not None, an integer or an array of NumPy.
        ValueError: ``seed`` is out of range, or ``device`` is not a CUDA device.

    Example:
        >>> rng = tcuda.random.default_rng(seed=42)
        >>> rng.random((2, 3)).shape
        (2, 3)
        >>> bool((rng.integers(0, 10, size=100) < 10).all())
        True
    """
    generator = Generator(device)
    generator.seed(seed)
    return generator


def _first_blank() -> npt.NDArray[np.uint8]:
    """Return an array for a state, and import NumPy first. Later calls of ``_blank`` copy the array."""
    import numpy as np

    global _blank
    state = np.zeros(_WORDS.size, np.uint8)
    _blank = state.copy
    return state


_blank: Callable[[], npt.NDArray[np.uint8]] = _first_blank


def _with_distributions(cls: type[Any]) -> type[Any]:
    """Return ``cls``, or a subclass of ``cls``, with the methods that make arrays of the runtime in use."""
    if hasattr(cls, "random_sample"):
        return cls
    implementation: type[Any] = backend.generator_type()
    if cls is Generator:
        return implementation
    joined: type[Any] | None = cls.__dict__.get("_joined")
    if joined is None:
        names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
        joined = type(cls.__name__, (cls, implementation), names)
        cls._joined = joined
    return joined


def generator_on(index: int, cls: type[Any], seed: int = DEFAULT_SEED) -> Any:
    """Return a generator for the device ``index``, an instance of ``cls``. ``cls`` must have the distributions."""
    self = object.__new__(cls)
    self.device = Device("cuda", index)
    self._index = index
    self._philox = PhiloxState(seed)
    return self


def _restored(index: int, words: tuple[int, int]) -> Generator:
    generator = Generator(index)
    generator._philox.write(*words)
    return generator


def checked_seed(seed: int) -> int:
    """Return ``seed`` as an unsigned integer of 64 bits.

    Raises:
        RuntimeError: ``seed`` is not an integer.
        ValueError: ``seed`` is out of range.
    """
    seed = _as_long(seed, "manual_seed")
    if not -(1 << 63) <= seed <= WORD:
        raise ValueError(f"Overflow when unpacking long long: a seed is -2**63 to 2**64 - 1; got {seed}.")
    return seed & WORD


def checked_offset(offset: int) -> int:
    """Return an offset as an integer.

    Raises:
        RuntimeError: ``offset`` is not an integer or not a multiple of 4.
        ValueError: ``offset`` is out of range.
    """
    offset = _as_long(offset, "manual_offset")
    if not 0 <= offset <= WORD:
        raise ValueError(f"An offset is 0 to 2**64 - 1; got {offset}.")
    if offset % INCREMENT:
        _refuse_offset(offset)
    return offset


def _as_long(value: Any, name: str) -> int:
    """Return ``value`` as an ``int``. As in torch, a ``bool`` is not accepted.

    Raises:
        RuntimeError: ``value`` is not an integer, or is a ``bool``.
    """
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise RuntimeError(f"{name} expected a long, but got {type(value).__name__}")


def seed_of_environment() -> int | None:
    """Return the seed in ``CUPY_SEED``, which CuPy reads too; None if the variable is not set.

    Raises:
        ValueError: The variable is not an integer.
    """
    text = os.environ.get("CUPY_SEED")
    try:
        return None if text is None else int(text)
    except ValueError:
        raise ValueError(
            f"CUPY_SEED must be an integer, such as CUPY_SEED=7; got {text!r}. Correct or remove the variable."
        ) from None


def seed_of(seed: Any) -> int:
    """Return the seed that ``seed`` stands for; a random seed if ``seed`` is None."""
    if seed is None:
        return int.from_bytes(os.urandom(8), "little") >> 11  # 53 bits, as in torch: a double can hold them
    if not isinstance(seed, int):
        import hashlib

        import numpy as np

        if isinstance(seed, np.ndarray):
            return int(hashlib.md5(seed.tobytes(), usedforsecurity=False).hexdigest()[:16], 16)
        if np.asarray(seed).dtype.kind not in "biu":
            raise TypeError(f"Seed must be an integer, not {seed!r}.")
    if not 0 <= int(seed) <= WORD:
        raise ValueError(f"Seed must be an integer between 0 and 2**64 - 1, not {seed!r}.")
    return int(seed)


def parsed_bytes(state: Any) -> npt.NDArray[np.uint8]:
    """Return ``state`` as an array of NumPy.

    Raises:
        TypeError: ``state`` is not an array of bytes on the host.
    """
    host = _on_host(state)
    if host is None or host.dtype.char != "B":
        raise TypeError(
            "RNG state must be a torch.ByteTensor, or an array of NumPy's of uint8, on the host; got "
            f"{getattr(state, 'dtype', None) or type(state).__name__}"
        )
    return host


def parsed_state(state: Any) -> tuple[int, int]:
    """Return the seed and the offset of ``state``, which was not read in a capture.

    Raises:
        TypeError: ``state`` is not an array of bytes on the host.
        RuntimeError: ``state`` has another size, or the offset in ``state`` is not a multiple of 4.
    """
    seed, offset = words_of(state)
    if offset % INCREMENT:
        _refuse_offset(offset)
    return seed, offset


def words_of(state: Any) -> tuple[int, int]:
    """Return the two words of ``state``.

    Raises:
        TypeError: ``state`` is not an array of bytes on the host.
        RuntimeError: ``state`` has another size.
    """
    host = parsed_bytes(state)
    if host.size == _WORDS.size:
        seed, offset = _WORDS.unpack(host.tobytes())
        return seed, offset
    if host.size == _WORDS.size // 2:
        return int.from_bytes(host.tobytes(), "little"), 0
    raise RuntimeError(f"RNG state is wrong size: {host.size} bytes; a state has 16, for the seed and the offset.")


def _on_host(state: Any) -> npt.NDArray[Any] | None:
    """Return an array of any library, such as a tensor, as an array of NumPy; None if the array is not on the host."""
    import numpy as np

    if not hasattr(state, "__array__"):
        return None
    try:
        return np.asarray(state)
    except TypeError:  # all libraries raise TypeError for an array on a device
        return None


def current_capture() -> Capture | None:
    """Return the capture in which the current stream takes part; None if tcuda has begun no such capture."""
    return capture_on(backend.current_stream().ptr) if captures else None


def _marked(mark: int) -> int:
    """Return the second word of a state at the place 0 of the capture and the generator with the number ``mark``."""
    return mark % (1 << 64 - _MARK) << _MARK | _IN_CAPTURE


def _refuse_in_capture(name: str) -> None:
    if current_capture() is not None:
        raise RuntimeError(
            f"Cannot call Generator.{name}() during CUDA graph capture: the offset of a graph's draws is not known "
            f"before a replay. Call {name}() before or after the capture."
        )


def _refuse_offset(offset: int) -> NoReturn:
    if offset % INCREMENT == _IN_CAPTURE and offset >> _MARK:
        raise RuntimeError(
            "offset must be a multiple of 4, and the state has none: it was read during CUDA graph capture, and can be "
            "restored in that capture only. Read the state before or after the capture."
        )
    raise RuntimeError(f"offset must be a multiple of 4, not {offset}: a draw takes four numbers of 32 bits.")
