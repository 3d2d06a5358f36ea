"""What ``tcuda demo`` runs: a small network that learns handwritten digits, written as a user of tcuda writes.

Read :mod:`~tcuda.demo.train` first: it is the program. :mod:`~tcuda.demo.replica` is one device's part in it,
:mod:`~tcuda.demo.loader` copies the next batch while this one is computed with, :mod:`~tcuda.demo.network` is the
mathematics, :mod:`~tcuda.demo.phases` measures, and :mod:`~tcuda.demo.checkpoint` is what a training goes on from.
:mod:`~tcuda.demo.captured_replica` does a replica's part with CUDA graphs. The same lines run on CUDA, on CuPy's
arrays, and on emulated devices.

Modules that begin with ``from tcuda import xp`` choose the runtime when they are imported, as ``import cupy`` would;
so a program that may have to emulate devices does that first: see :mod:`~tcuda.demo.devices`.
"""
