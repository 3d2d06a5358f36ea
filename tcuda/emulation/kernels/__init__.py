"""Kernels of emulated devices: code in CUDA C++ that ``tcuda.emulation.rtc`` compiles.

``module``, ``function`` and ``arguments`` load a library and launch the kernels of the library. The classes of the
array namespace (``raw_kernel``, ``raw_module``, ``elementwise``, ``reduction``) and ``compile_kernel`` use the three.
"""
