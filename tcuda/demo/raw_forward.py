"""The forward pass of the network as kernels of CUDA C++, instead of operations on arrays."""

from __future__ import annotations

import importlib.resources
from typing import TYPE_CHECKING

import numpy

from tcuda import xp
from tcuda.demo.digits import CLASSES, PIXELS
from tcuda.demo.network import Activations

if TYPE_CHECKING:
    from tcuda.demo.arrays import DeviceArray
    from tcuda.demo.network import Parameters

_WARP = 32
_THREADS = 128
"""The number of threads of a block that computes hidden units."""


class RawForward:
    """The kernels of ``forward.cu``, which are called like :func:`~tcuda.demo.network.forward`.

    The constructor compiles the kernels for the current device, so that a capture of the call does not compile.

    Raises:
        RuntimeError: The devices are emulated, and the machine has no C++ compiler.
    """

    def __init__(self) -> None:
        source = (importlib.resources.files("tcuda.demo") / "forward.cu").read_text(encoding="utf-8")
        module = xp.RawModule(code=source, options=(f"-DPIXELS={PIXELS}", f"-DCLASSES={CLASSES}"))
        self._hidden_layer = module.get_function("hidden_layer")
        self._output_layer = module.get_function("output_layer")

    def __call__(self, parameters: Parameters, pixels: DeviceArray) -> Activations:
        """Return the activations of every layer for the images."""
        images, units = len(pixels), parameters.hidden_bias.size
        hidden = xp.empty((images, units), xp.float32)
        weight, bias = parameters.hidden_weight, parameters.hidden_bias
        # The C++ type of `units` is int. A Python int would be passed in 8 bytes.
        self._hidden_layer((images,), (_THREADS,), (pixels, weight, bias, hidden, numpy.int32(units)))
        log_probabilities = xp.empty((images, CLASSES), xp.float32)
        weight, bias = parameters.output_weight, parameters.output_bias
        self._output_layer((images,), (_WARP,), (hidden, weight, bias, log_probabilities, numpy.int32(units)))
        return Activations(pixels, hidden, log_probabilities)
