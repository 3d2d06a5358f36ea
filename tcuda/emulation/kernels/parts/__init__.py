"""The parts that ``xp.ElementwiseKernel`` and ``xp.ReductionKernel`` share: the user writes a part of each kernel.

The modules build the source of a whole kernel around the user's part, and compile the source with ``xp.RawModule``.
"""
