"""Seeds and states of the default generators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda._arguments import several
from tcuda._process.device_rules import OF_RANDOM_STATES, device_count, resolve
from tcuda._process.lazy import _lazy_call, _lazy_init, cuda, is_initialized
from tcuda.random import _defaults
from tcuda.random._defaults import generators
from tcuda.random._generator import checked_seed, parsed_state

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
        device: The device; by default the current one.

    Returns:
        An array of 16 bytes on the host: the seed, and then the offset, each with its lowest byte first.
        ``torch.cuda.set_rng_state`` takes it, as a tensor.

    Raises:
        IndexError: There is no such device.
        RuntimeError: The index is negative.
        ValueError: ``device`` is not a CUDA device.
    """
    return _default_generator(device).get_state()


def get_rng_state_all() -> list[State]:
    """Return the states of the default generators of all devices (``torch.cuda.get_rng_state_all``).

    Returns:
        A state for each device; empty where there is no device.
    """
    if not device_count():
        return []
    _lazy_init()
    return [generator.get_state() for generator in generators()]


def set_rng_state(new_state: State, device: DeviceArgument = "cuda") -> None:
    """Let the default generator of ``device`` go on from a state (``torch.cuda.set_rng_state``).

    Before tcuda is initialised it is remembered until then.

    Args:
        new_state: What :func:`get_rng_state` or ``torch.cuda.get_rng_state`` returned.
        device: The device; by default the current one.

    Raises:
        TypeError: ``new_state`` is no array of bytes on the host.
        RuntimeError: It has not 16 bytes, or the index of the device is negative.
        IndexError: There is no such device.
        ValueError: ``device`` is not a CUDA device.
    """
    if is_initialized():
        _default_generator(device).set_state(new_state)
        return
    words = parsed_state(new_state)
    _lazy_call(lambda: _default_generator(device)._philox.write(*words))


def set_rng_state_all(new_states: Iterable[State]) -> None:
    """Let the default generators of all devices go on from these states (``torch.cuda.set_rng_state_all``).

    Args:
        new_states: A state for each device, as :func:`get_rng_state_all` returns them.

    Raises:
        TypeError: One is no array of bytes on the host, or ``new_states`` cannot be gone through. Nothing is changed
            then, nor below.
        RuntimeError: One has not 16 bytes.
        IndexError: There are more of them than devices.
    """
    states = several(new_states, "new_states", "the states that get_rng_state_all() returned")
    words = [parsed_state(state) for state in states]

    def call() -> None:
        generators = [_default_generator(device) for device in range(len(words))]
        for generator, (seed, offset) in zip(generators, words, strict=True):
            generator._philox.write(seed, offset)

    _lazy_call(call)


def manual_seed(seed: int) -> None:
    """Seed the default generator of the current device (``torch.cuda.manual_seed``).

    Before tcuda is initialised it is remembered until then, and no device is touched.

    Args:
        seed: From -2**63 to 2**64 - 1; one below 0 counts from 2**64.

    Raises:
        ValueError: ``seed`` is out of range, or a text that is no number.
        TypeError: It cannot be an integer.
    """
    seed = int(seed)
    if is_initialized():
        _of_current_device().manual_seed(seed)
        return
    checked = checked_seed(seed)
    _lazy_call(lambda: _of_current_device().manual_seed(checked))


def manual_seed_all(seed: int) -> None:
    """Seed the default generators of all devices alike (``torch.cuda.manual_seed_all``).

    Before tcuda is initialised it is remembered until then, and no device is touched.

    Args:
        seed: From -2**63 to 2**64 - 1; one below 0 counts from 2**64.

    Raises:
        ValueError: ``seed`` is out of range, or a text that is no number.
        TypeError: It cannot be an integer.
    """
    seed = checked_seed(int(seed))

    def call() -> None:
        for generator in generators():
            generator.manual_seed(seed)

    _lazy_call(call)


def seed() -> None:
    """Seed the default generator of the current device with a number that nobody can know (``torch.cuda.seed``)."""
    _lazy_call(lambda: _of_current_device().seed())


def seed_all() -> None:
    """Seed the default generators of all devices with the same number, which nobody can know.

    This is ``torch.cuda.seed_all``.
    """

    def call() -> None:
        first, *others = generators()
        chosen = first.seed()
        for generator in others:
            generator.manual_seed(chosen)

    _lazy_call(call)


def initial_seed() -> int:
    """Return the seed of the default generator of the current device (``torch.cuda.initial_seed``)."""
    return _of_current_device().initial_seed()


def _default_generator(device: DeviceArgument) -> Generator:
    if device == "cuda":
        return _of_current_device()
    _lazy_init()
    return generators()[resolve(device, OF_RANDOM_STATES)]


def _of_current_device() -> Generator:
    current = cuda.getDevice()  # which initialises tcuda
    return (_defaults.made or generators())[current]
