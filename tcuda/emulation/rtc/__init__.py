"""Run-time compilation for emulated devices: CUDA C++ becomes a shared library that runs on the host.

The C++ compiler of the machine compiles a kernel. The headers in ``include`` define the device language. The modules of
this package do not import NumPy.
"""

from tcuda.emulation.rtc.build import ELEMENTS, FILE, VARIABLE, build
from tcuda.emulation.rtc.checks import Checks, chosen
from tcuda.emulation.rtc.compiler import Compiler, find
from tcuda.emulation.rtc.errors import CompileException

__all__ = ["ELEMENTS", "FILE", "VARIABLE", "Checks", "CompileException", "Compiler", "build", "chosen", "find"]
