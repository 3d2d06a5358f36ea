"""Emulated devices: the CUDA runtime's rules, on host memory and a clock of its own."""

from tcuda._runtime.emulated.runtime import EmulatedRuntime
from tcuda._runtime.emulated.settings import from_environment, parse_memory

__all__ = ["EmulatedRuntime", "from_environment", "parse_memory"]
