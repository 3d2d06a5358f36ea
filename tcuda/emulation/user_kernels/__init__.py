"""Kernels of which the user writes a part in CUDA C++: ``xp.ElementwiseKernel`` and ``xp.ReductionKernel``.

The modules build the source of a whole kernel around the user's part, and run the kernel by ``xp.RawModule``.
"""
