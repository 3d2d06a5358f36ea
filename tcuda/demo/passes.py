"""The choice of the arithmetic: the functions of the forward pass, of the backward pass and of the mean gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from tcuda.demo import exact, network
from tcuda.demo.raw_forward import RawForward

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcuda.demo.arrays import DeviceArray
    from tcuda.demo.network import Activations, Parameters


class Passes(NamedTuple):
    """The functions of a kernel, which is a value of the setting ``kernel``.

    Attributes:
        forward: Returns the activations of every layer for images.
        backward: Writes the gradients of the loss into its last argument.
        mean: Returns the gradient of an update, from the sum of the gradients and the number of digits in a batch.
        dtype: The type of the gradients and of the loss.
    """

    forward: Callable[[Parameters, DeviceArray], Activations]
    backward: Callable[[Parameters, Activations, DeviceArray, Parameters], None]
    mean: Callable[[DeviceArray, int], DeviceArray]
    dtype: type[numpy.floating[Any]]


def passes(kernel: str) -> Passes:
    """Return the functions of ``kernel``. The raw kernels are compiled for the current device.

    Raises:
        RuntimeError: ``kernel`` is ``"raw"``, the devices are emulated, and the machine has no C++ compiler.
    """
    if kernel == "exact":
        return Passes(exact.forward, exact.backward, exact.mean, numpy.float64)
    forward = RawForward() if kernel == "raw" else network.forward
    return Passes(forward, network.backward, network.mean, numpy.float32)
