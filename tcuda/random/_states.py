"""The state of a generator of any kind, also of those whose state lies on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcuda._process.captures import capture_on, captures
from tcuda._process.lazy import backend, cuda
from tcuda._process.ledger import ledger
from tcuda._runtime.protocol import MEMCPY_DEVICE_TO_HOST, MEMCPY_HOST_TO_DEVICE
from tcuda.random._generator import Generator, parsed_bytes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    State = npt.NDArray[np.uint8]

_HEAD = 16
"""The bytes before the state of a bit generator, with the name of its class."""


def get_state(generator: Any) -> State:
    """Return the state of a generator, from which :func:`set_state` lets a generator go on.

    Args:
        generator: A generator of tcuda, or a ``Generator`` or a bit generator of ``cupy.random``. The state of the
            latter two is an array of the device, so that the call waits for the current stream.

    Returns:
        An array of bytes (uint8) on the host.

    Raises:
        TypeError: ``generator`` is no such generator. A ``cupy.random.RandomState`` that CuPy made has a generator of
            cuRAND, and cuRAND has no call that tells its state: make the generator by ``tcuda.Generator()``.
        RuntimeError: The device of the generator is not current, the current stream captures, or tcuda has not
            allocated the state, because the generator was made before tcuda was initialised.

    Example:
        >>> rng = xp.random.default_rng(7)
        >>> state = tcuda.random.get_state(rng)
        >>> first = rng.random(3)
        >>> tcuda.random.set_state(rng, state)
        >>> bool((rng.random(3) == first).all())
        True
    """
    import numpy as np

    if isinstance(generator, Generator):
        return generator.get_state()
    bits, address, size = place_of(generator, "get_state")
    state = np.zeros(_HEAD + size, np.uint8)
    state[:_HEAD] = np.frombuffer(_name_of(bits), np.uint8)
    _copy(state[_HEAD:].ctypes.data, address, size, MEMCPY_DEVICE_TO_HOST)
    return state


def set_state(generator: Any, new_state: State) -> None:
    """Let a generator go on from the state of a generator of the same class.

    Args:
        generator: The generator; see :func:`get_state`.
        new_state: The result of :func:`get_state`.

    Raises:
        TypeError: ``generator`` is of another kind, or ``new_state`` is not an array of bytes on the host.
        RuntimeError: The state is of another class or size, the device of the generator is not current, the current
            stream captures, or tcuda has not allocated the state.

    Example:
        >>> rng, other = xp.random.default_rng(7), xp.random.default_rng(8)
        >>> tcuda.random.set_state(other, tcuda.random.get_state(rng))
        >>> bool((rng.random(3) == other.random(3)).all())
        True
    """
    if isinstance(generator, Generator):
        generator.set_state(new_state)
        return
    import numpy as np

    bits, address, size = place_of(generator, "set_state")
    state = np.ascontiguousarray(parsed_bytes(new_state))
    if state[:_HEAD].tobytes() != _name_of(bits):
        raise RuntimeError(
            f"The state is that of another class than {type(bits).__name__}: give a state that get_state() returned "
            "for a generator of this class."
        )
    if len(state) != _HEAD + size:
        raise RuntimeError(
            f"RNG state is wrong size: {len(state)} bytes; the state of this generator has {_HEAD + size}. Make both "
            "generators with the same `size`, on GPUs of the same kind."
        )
    _copy(address, state[_HEAD:].ctypes.data, size, MEMCPY_HOST_TO_DEVICE)


def place_of(generator: Any, call: str) -> tuple[Any, int, int]:
    """Return the bit generator of ``generator``, and the address and the size in bytes of its state.

    Raises:
        TypeError: ``generator`` has no bit generator with a state on a device.
        RuntimeError: See :func:`get_state`.
    """
    bits = getattr(generator, "bit_generator", generator)
    if not callable(getattr(bits, "state", None)):
        raise TypeError(
            f"{call}() takes a generator of tcuda, or a Generator or a bit generator of cupy.random, not "
            f"{type(generator).__name__}. A RandomState that CuPy made has a generator of cuRAND, which cannot tell "
            "its state: use tcuda.Generator()."
        )
    if captures and capture_on(backend.current_stream().ptr) is not None:
        raise RuntimeError(f"Cannot call {call}() during CUDA graph capture: the host waits for the state.")
    address: int = bits.state()
    held = ledger().block_at(cuda.getDevice(), address) if address else None
    if address and (held is None or held[0] != address):
        raise RuntimeError(
            f"{call}() knows only the size of memory that tcuda has allocated, and the state of this generator is in "
            "other memory. Make the generator after tcuda.init()."
        )
    return bits, address, held[1] if held else 0


def _name_of(bits: Any) -> bytes:
    return type(bits).__name__.encode()[:_HEAD].ljust(_HEAD, b"\0")


def _copy(target: int, source: int, size: int, kind: int) -> None:
    stream = backend.current_stream().ptr
    if size:
        cuda.memcpyAsync(target, source, size, kind, stream)
    cuda.streamSynchronize(stream)


def pickled(bits: Any) -> tuple[Any, ...]:
    """Return how pickle makes a bit generator of ``cupy.random`` again: on the device of its number, with its state."""
    _, _, size = place_of(bits, "pickle")
    _, _, each = place_of(type(bits)(0, size=1), "pickle")
    return _made_again, (type(bits), cuda.getDevice(), size // each, get_state(bits))


def _made_again(kind: type[Any], device: int, threads: int, state: State) -> Any:
    from tcuda._device import device as on_device

    with on_device(device):
        made = kind(0, size=threads)
        set_state(made, state)
    return made
