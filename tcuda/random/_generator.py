"""A generator of random numbers on a device."""

from __future__ import annotations

import operator
import os
import struct
from typing import TYPE_CHECKING, Any, NoReturn

from tcuda._core import PhiloxState
from tcuda._process.captures import capture_on, captures
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
"""The seed of a generator that nobody has seeded, as in torch."""

_WORDS = struct.Struct("<QQ")


class Generator:
    """A source of random numbers on a device (``torch.Generator``).

    It is a ``cupy.random.RandomState`` too, or ``tcuda.xp``'s on emulated devices: it has a method for each
    distribution. Those that PyTorch has as well, uniform, normal and integer ones, give bit for bit the numbers of
    PyTorch with the same seed and offset on the same GPU. All of its state is a seed and an offset, which moves with
    every draw; it lies on the host, so that reading or changing it waits for nothing.

    Threads may share a generator: each draw has numbers of its own.

    Args:
        device: The device of the arrays that it makes, which must be current when they are made; None for the one that
            is current now.

    Raises:
        RuntimeError: There is no such device.
        ValueError: ``device`` is not a CUDA device.

    Attributes:
        device: Its device.
    """

    device: Device
    _index: int
    _philox: PhiloxState

    if TYPE_CHECKING:  # the distributions, which the classes that derive from this one have

        def __getattr__(self, name: str) -> Any: ...

    # In __new__, as in torch: a subclass may have other arguments in its __init__, and need not call this one's.
    def __new__(cls, device: DeviceArgument = None) -> Self:
        self: Self = generator_on(resolve(device, OF_GENERATORS), _with_distributions(cls))
        return self

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Do nothing, and leave the arguments to ``__new__``.

        ``RandomState.__init__``, which comes next, would make a generator of cuRAND.
        """

    def manual_seed(self, seed: int) -> Self:
        """Start over with a seed (``torch.Generator.manual_seed``).

        Args:
            seed: From -2**63 to 2**64 - 1; one below 0 counts from 2**64.

        Returns:
            The generator.

        Raises:
            RuntimeError: ``seed`` is no integer, or the current stream is capturing and it is another seed.
            ValueError: It is out of range.
        """
        if not (type(seed) is int and 0 <= seed <= WORD):
            seed = checked_seed(seed)
        if captures and capture_on(backend.current_stream().ptr) is not None:
            if seed != self.initial_seed():
                raise RuntimeError(
                    "Generator.manual_seed() can be called during stream capture only if new seed is the same as the "
                    "original seed: a graph draws from the seed that the generator has when it is replayed."
                )
            return self
        self._philox.write(seed, 0)
        return self

    def seed(self, seed: Any = None) -> int:
        """Start over with a seed that nobody can know, or as ``cupy.random.seed`` does with a given one.

        Args:
            seed: None (``torch.Generator.seed``), an integer from 0 to 2**64 - 1, or an array of NumPy's to make a seed
                of (``cupy.random.RandomState.seed``).

        Returns:
            The seed.

        Raises:
            TypeError: ``seed`` is none of these.
            ValueError: It is out of range.
            RuntimeError: The current stream is capturing.
        """
        chosen = seed_of(seed)
        _refuse_in_capture("seed")
        self._philox.write(chosen, 0)
        return chosen

    def initial_seed(self) -> int:
        """Return the seed that the generator started with (``torch.Generator.initial_seed``)."""
        return self._philox.read()[0]

    def get_state(self) -> npt.NDArray[np.uint8]:
        """Return the state as an array of 16 bytes on the host: seed and offset (``torch.Generator.get_state``)."""
        state = _blank()
        self._philox.store(state)
        return state

    def set_state(self, new_state: npt.NDArray[np.uint8]) -> None:
        """Go on from a state (``torch.Generator.set_state``).

        Args:
            new_state: What :meth:`get_state` returned, or ``torch.Generator.get_state`` of a CUDA generator: 16 bytes,
                or the first 8 of them, which are the seed alone.

        Raises:
            TypeError: ``new_state`` is no array of bytes on the host.
            RuntimeError: It has another size, or its offset is not a multiple of 4.
        """
        if not self._philox.load(new_state):
            self._philox.write(*parsed_state(new_state))

    def get_offset(self) -> int:
        """Return the offset: how many numbers of 32 bits every subsequence has given.

        Raises:
            RuntimeError: The current stream is capturing.
        """
        _refuse_in_capture("get_offset")
        return self._philox.read()[1]

    def set_offset(self, offset: int) -> None:
        """Change the offset and keep the seed (``torch.Generator.set_offset``).

        Raises:
            RuntimeError: ``offset`` is no integer, or not a multiple of 4, or the current stream is capturing.
            ValueError: It is out of range.
        """
        offset = _as_long(offset, "manual_offset")
        if not 0 <= offset <= WORD:
            raise ValueError(f"An offset is 0 to 2**64 - 1; got {offset}.")
        if offset % INCREMENT:
            _refuse_offset(offset)
        _refuse_in_capture("set_offset")
        self._philox.move_to(offset)

    def clone_state(self) -> Generator:
        """Return another generator, on the same device, with a copy of the state (``torch.Generator.clone_state``)."""
        clone = Generator(self.device)
        clone._philox = PhiloxState(*self._philox.read())
        return clone

    def graphsafe_get_state(self) -> Generator:
        """Return another generator with the very same state: what one draws, the other does not draw again.

        This is ``torch.Generator.graphsafe_get_state``.
        """
        other = Generator(self.device)
        other._philox = self._philox
        return other

    def graphsafe_set_state(self, state: Generator) -> None:
        """Share the state of another generator from now on (``torch.Generator.graphsafe_set_state``).

        Raises:
            TypeError: ``state`` is no generator.
            RuntimeError: It is of another device.
        """
        if not isinstance(state, Generator):
            raise TypeError(f"expected a Generator, but got {type(state).__name__}")
        if state.device != self.device:
            raise RuntimeError(f"Expected a '{self.device}' generator device but found '{state.device}'")
        self._philox = state._philox

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.device.index, self._philox.read())

    def __repr__(self) -> str:
        seed, offset = self._philox.read()
        return f"<tcuda.Generator device={str(self.device)!r} seed={seed} offset={offset}>"


def default_rng(device: DeviceArgument = None, *, seed: Any = None) -> Generator:
    """Return a new generator, for code that is written for ``cupy.random.default_rng``.

    It has the methods of ``cupy.random.Generator``, such as ``random``, ``integers`` and ``standard_normal``. In
    contrast to that one its state can be saved, by :meth:`Generator.get_state` or by pickling it.

    Args:
        device: The device of the arrays that it makes; None for the one that is current now.
        seed: None for one that nobody can know, an integer from 0 to 2**64 - 1, or an array of NumPy's.

    Raises:
        RuntimeError: There is no such device.
        TypeError: ``seed`` is none of these.
        ValueError: It is out of range, or ``device`` is not a CUDA device.
    """
    generator = Generator(device)
    generator.seed(seed)
    return generator


def _first_blank() -> npt.NDArray[np.uint8]:
    """Make room for a state, the first time: NumPy is not imported before it is needed."""
    import numpy as np

    global _blank
    state = np.zeros(_WORDS.size, np.uint8)
    _blank = state.copy
    return state


_blank: Callable[[], npt.NDArray[np.uint8]] = _first_blank


def _with_distributions(cls: type[Any]) -> type[Any]:
    """Return ``cls`` with the methods that make arrays of the runtime in use, which some classes have already."""
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
    """Return a generator for the device ``index``: an instance of ``cls``, which has the distributions."""
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
    """Return ``seed`` as 64 bits without a sign.

    Raises:
        RuntimeError: It is no integer.
        ValueError: It is out of range.
    """
    seed = _as_long(seed, "manual_seed")
    if not -(1 << 63) <= seed <= WORD:
        raise ValueError(f"Overflow when unpacking long long: a seed is -2**63 to 2**64 - 1; got {seed}.")
    return seed & WORD


def _as_long(value: Any, name: str) -> int:
    """Return an integer that is no ``bool``, as torch wants one.

    Raises:
        RuntimeError: It is none.
    """
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise RuntimeError(f"{name} expected a long, but got {type(value).__name__}")


def seed_of_environment() -> int | None:
    """Return the seed that ``CUPY_SEED`` gives to generators that CuPy makes, None if it gives none."""
    text = os.environ.get("CUPY_SEED")
    return None if text is None else int(text)


def seed_of(seed: Any) -> int:
    """Return the seed that ``seed`` stands for; a seed that nobody can know if it is None."""
    if seed is None:
        return int.from_bytes(os.urandom(8), "little") >> 11  # 53 bits as torch's, which a double can hold
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


def parsed_state(state: Any) -> tuple[int, int]:
    """Return the seed and the offset of ``state``.

    Raises:
        TypeError: It is no array of bytes on the host.
        RuntimeError: It has another size, or its offset is not a multiple of 4.
    """
    host = _on_host(state)
    if host is None or host.dtype.char != "B":
        raise TypeError(
            "RNG state must be a torch.ByteTensor, or an array of NumPy's of uint8, on the host; got "
            f"{getattr(state, 'dtype', None) or type(state).__name__}"
        )
    if host.size == _WORDS.size:
        seed, offset = _WORDS.unpack(host.tobytes())
        if offset % INCREMENT:
            _refuse_offset(offset)
        return seed, offset
    if host.size == _WORDS.size // 2:
        return int.from_bytes(host.tobytes(), "little"), 0
    raise RuntimeError(f"RNG state is wrong size: {host.size} bytes; it has 16, of the seed and the offset.")


def _on_host(state: Any) -> npt.NDArray[Any] | None:
    """Return an array of any library, such as a tensor, as NumPy's if it lies on the host."""
    import numpy as np

    if not hasattr(state, "__array__"):
        return None
    try:
        return np.asarray(state)
    except TypeError:  # what they all raise for an array of a device
        return None


def _refuse_in_capture(name: str) -> None:
    if captures and capture_on(backend.current_stream().ptr) is not None:
        raise RuntimeError(
            f"Cannot call Generator.{name}() during CUDA graph capture: the offset of a graph's draws is known when it "
            "is replayed. Call it before or after."
        )


def _refuse_offset(offset: int) -> NoReturn:
    raise RuntimeError(f"offset must be a multiple of 4, not {offset}: a draw takes four numbers of 32 bits.")
