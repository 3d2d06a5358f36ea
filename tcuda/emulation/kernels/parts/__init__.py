"""What ``xp.ElementwiseKernel`` and ``xp.ReductionKernel`` share: kernels of which the user writes a part in CUDA C++.

The modules build the source of a whole kernel around the user's part, and compile the source with ``xp.RawModule``.
"""
