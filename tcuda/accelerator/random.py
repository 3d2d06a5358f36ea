"""The default generators of the accelerator (``torch.accelerator.random``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcuda import random
from tcuda._base.public_names import public_names
from tcuda._process.devices import _get_device_index
from tcuda.random import get_rng_state_all

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tcuda._process.devices import DeviceArgument

__all__ = ["get_rng_state", "get_rng_state_all", "initial_seed"]
__dir__ = public_names(__name__)


def initial_seed(device: DeviceArgument = None, /) -> int:
    """Return the seed of the default generator of a device (``torch.accelerator.random.initial_seed``).

    Args:
        device: The device; the current device if None.

    Raises:
        IndexError: The device does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> tcuda.manual_seed_all(7)
        >>> tcuda.accelerator.random.initial_seed(1)
        7
    """
    return random.default_generators[_get_device_index(device, optional=True)].initial_seed()


def get_rng_state(device: DeviceArgument = None, /) -> npt.NDArray[np.uint8]:
    """Return the state of the default generator of a device (``torch.accelerator.random.get_rng_state``).

    See :func:`tcuda.get_rng_state`.

    Args:
        device: The device; the current device if None.

    Returns:
        An array of 16 bytes (uint8) on the host.

    Raises:
        IndexError: The device does not exist.
        ValueError: ``device`` is not a CUDA device.

    Example:
        >>> state = tcuda.accelerator.random.get_rng_state()
        >>> first = xp.random.rand(3)
        >>> tcuda.set_rng_state(state)
        >>> bool((xp.random.rand(3) == first).all())
        True
    """
    return random.get_rng_state("cuda" if device is None else device)
