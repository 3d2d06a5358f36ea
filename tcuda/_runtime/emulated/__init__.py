"""Emulated devices: the CUDA runtime's rules, on host memory and a clock of its own."""

from tcuda._runtime.emulated.runtime import EmulatedRuntime

__all__ = ["EmulatedRuntime"]
