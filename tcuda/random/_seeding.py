"""Seeds and states of the default generators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._base.arguments import several
from tcuda._process.device_rules import OF_RANDOM_STATES, device_count, resolve
from tcuda._process.lazy import _lazy_call, _lazy_init, cuda, is_initialized
from tcuda.random import _defaults
from tcuda.random._defaults import generators
from tcuda.random._generator import checked_offset, checked_seed, parsed_state, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    import numpy.typing as npt

    from tcuda._process.devices import DeviceArgument
    from tcuda.random._generator import Generator

    State = npt.NDArray[np.uint8]


def get_rng_state(device: DeviceArgument = "cuda") -> State:
    """Return the state of the default generator of ``device`` (``torch.cuda.get_rng_state``).

    Args:
        device: The device; by default the current device.

    Returns:
        An array of 16 bytes (uint8) on the host: the seed and then the offset, each with the lowest byte first.
        ``torch.cuda.set_rng_state`` accepts the array as a tensor.

    Raises:
        IndexError: ``device`` does not exist.
        RuntimeError: The index of ``device`` is negative.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.manual_seed(42)
        >>> tcuda.get_rng_state("cuda:0").view("uint64")  # the seed and the offset
        array([42,  0], dtype=uint64)
    """
    return _default_generator(device).get_state()


def get_rng_state_all() -> list[State]:
    """Return the states of the default generators of all devices (``torch.cuda.get_rng_state_all``).

    Returns:
        A list with a state for each device; an empty list if no device exists.

    Example:
        >>> states = tcuda.get_rng_state_all()
        >>> len(states) == tcuda.device_count()
        True
    """
    if not device_count():
        return []
    _lazy_init()
    return [generator.get_state() for generator in generators()]


def set_rng_state(new_state: State, device: DeviceArgument = "cuda") -> None:
    """Set the state of the default generator of ``device`` (``torch.cuda.set_rng_state``).

    Before tcuda is initialised, the state is remembered until then.

    Args:
        new_state: The result of :func:`get_rng_state` or of ``torch.cuda.get_rng_state``.
        device: The device; by default the current device.

    Raises:
        TypeError: ``new_state`` is not an array of bytes on the host.
        RuntimeError: ``new_state`` has another size, the offset in ``new_state`` is not a multiple of 4, or the index
            of ``device`` is negative.
        IndexError: ``device`` does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> state = tcuda.get_rng_state()
        >>> x = xp.random.random_sample(4)
        >>> tcuda.set_rng_state(state)
        >>> bool((xp.random.random_sample(4) == x).all())
        True
    """
    if is_initialized():
        _default_generator(device).set_state(new_state)
        return
    words = parsed_state(new_state)
    _lazy_call(lambda: _default_generator(device)._philox.write(*words))


def set_rng_state_all(new_states: Iterable[State]) -> None:
    """Set the states of the default generators of all devices (``torch.cuda.set_rng_state_all``).

    A call that raises changes no state.

    Args:
        new_states: A state for each device, as :func:`get_rng_state_all` returns the states.

    Raises:
        TypeError: A state is not an array of bytes on the host, or ``new_states`` is not iterable.
        RuntimeError: A state has another size, or the offset in a state is not a multiple of 4.
        IndexError: ``new_states`` has more states than there are devices.

    Example:
        >>> states = tcuda.get_rng_state_all()
        >>> x = xp.random.random_sample(4)
        >>> tcuda.set_rng_state_all(states)
        >>> bool((xp.random.random_sample(4) == x).all())
        True
    """
    states = several(new_states, "new_states", "the states that get_rng_state_all() returned")
    words_of_all = [(words_of if is_initialized() else parsed_state)(state) for state in states]

    def call() -> None:
        changes = [_default_generator(device)._change_to(*words) for device, words in enumerate(words_of_all)]
        for change in changes:
            change()

    _lazy_call(call)


def _get_rng_state_offset(device: DeviceArgument = "cuda") -> int:
    """Return the offset of the default generator of ``device`` (``torch.cuda._get_rng_state_offset``).

    Args:
        device: The device; by default the current device.

    Raises:
        IndexError: ``device`` does not exist.
        RuntimeError: The index of ``device`` is negative, or the current stream is capturing.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.manual_seed(42)
        >>> tcuda._get_rng_state_offset()
        0
    """
    return _default_generator(device).get_offset()


def _set_rng_state_offset(offset: int, device: DeviceArgument = "cuda") -> None:
    """Set the offset of the default generator of ``device``, and keep the seed (``torch.cuda._set_rng_state_offset``).

    Before tcuda is initialised, the offset is remembered until then.

    Args:
        offset: The offset, a multiple of 4 from 0 to 2**64 - 1.
        device: The device; by default the current device.

    Raises:
        IndexError: ``device`` does not exist.
        RuntimeError: ``offset`` is not an integer or not a multiple of 4, the index of ``device`` is negative, or the
            current stream is capturing.
        ValueError: ``offset`` is out of range, or ``device`` is not a CUDA device.

    Example:
        >>> tcuda._set_rng_state_offset(8)
        >>> tcuda._get_rng_state_offset()
        8
    """
    checked = checked_offset(offset)
    _lazy_call(lambda: _default_generator(device).set_offset(checked))


def manual_seed(seed: int) -> None:
    """Seed the default generator of the current device (``torch.cuda.manual_seed``).

    Before tcuda is initialised, the seed is remembered until then, and no device is touched.

    Args:
        seed: The seed, from -2**63 to 2**64 - 1. A negative number ``n`` stands for ``2**64 + n``.

    Raises:
        ValueError: ``seed`` is out of range, or is a text that is not a number.
        TypeError: ``seed`` cannot be converted to an integer.

    Example:
        >>> tcuda.manual_seed(42)
        >>> x = xp.random.random_sample(4)
        >>> tcuda.manual_seed(42)
        >>> bool((xp.random.random_sample(4) == x).all())
        True
    """
    seed = _integer(seed, "manual_seed")
    if is_initialized():
        _of_current_device().manual_seed(seed)
        return
    checked = checked_seed(seed)
    _lazy_call(lambda: _of_current_device().manual_seed(checked))


def manual_seed_all(seed: int) -> None:
    """Seed the default generators of all devices with the same seed (``torch.cuda.manual_seed_all``).

    Before tcuda is initialised, the seed is remembered until then, and no device is touched.

    Args:
        seed: The seed, from -2**63 to 2**64 - 1. A negative number ``n`` stands for ``2**64 + n``.

    Raises:
        ValueError: ``seed`` is out of range, or is a text that is not a number.
        TypeError: ``seed`` cannot be converted to an integer.

    Example:
        >>> tcuda.manual_seed_all(42)
        >>> [generator.initial_seed() for generator in tcuda.default_generators][0]
        42
    """
    seed = checked_seed(_integer(seed, "manual_seed_all"))

    def call() -> None:
        for generator in generators():
            generator.manual_seed(seed)

    _lazy_call(call)


def _integer(seed: object, function: str) -> int:
    """Return ``seed`` as an integer, as ``int()`` does.

    Raises:
        OverflowError: ``seed`` is infinite.
        TypeError, ValueError: ``seed`` is no number.
    """
    try:
        return int(seed)  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError) as error:
        raise type(error)(f"{function}() takes an integer as the seed, such as 42; got {seed!r}.") from None


def seed() -> None:
    """Seed the default generator of the current device with a random seed (``torch.cuda.seed``).

    Example:
        >>> tcuda.seed()
        >>> tcuda.initial_seed() == tcuda.default_generators[0].initial_seed()
        True
    """
    _lazy_call(lambda: _of_current_device().seed())


def seed_all() -> None:
    """Seed the default generators of all devices with the same random seed (``torch.cuda.seed_all``).

    Example:
        >>> tcuda.seed_all()
        >>> len({generator.initial_seed() for generator in tcuda.default_generators})  # one seed for all
        1
    """

    def call() -> None:
        first, *others = generators()
        chosen = first.seed()
        for generator in others:
            generator.manual_seed(chosen)

    _lazy_call(call)


def initial_seed() -> int:
    """Return the seed of the default generator of the current device (``torch.cuda.initial_seed``).

    Example:
        >>> tcuda.manual_seed(42)
        >>> tcuda.initial_seed()
        42
    """
    return _of_current_device().initial_seed()


def _default_generator(device: DeviceArgument) -> Generator:
    if device == "cuda":
        return _of_current_device()
    _lazy_init()
    return generators()[resolve(device, OF_RANDOM_STATES)]


def _of_current_device() -> Generator:
    current = cuda.getDevice()  # which initialises tcuda
    try:
        return _defaults.made[current]
    except IndexError:  # the generators are not made yet
        return generators()[current]
