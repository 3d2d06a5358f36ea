"""The program of ``tcuda demo``: a small network learns handwritten digits. The code uses tcuda as a user would.

Read :mod:`~tcuda.demo.train` first: this module is the program. :mod:`~tcuda.demo.replica` is the part of one device.
:mod:`~tcuda.demo.loader` copies the next batch while the device works on the present batch.
:mod:`~tcuda.demo.network` has the mathematics, and :mod:`~tcuda.demo.phases` measures times.
:mod:`~tcuda.demo.checkpoint` saves a training, so that another run can resume it.
:mod:`~tcuda.demo.raw_forward` has the forward pass once more, as kernels of CUDA C++ (``forward.cu``).
:mod:`~tcuda.demo.exact` has both passes once more, with sums without rounding.
:mod:`~tcuda.demo.captured_replica` does the work of a replica with CUDA graphs. The same lines run on CUDA, with CuPy's
arrays, and on emulated devices. :mod:`tcuda.demo.workers` trains on workers of Dask.

Modules that begin with ``from tcuda import xp`` choose the runtime when they are imported, as ``import cupy`` would.
A program that may have to emulate devices must therefore do so before: see :mod:`~tcuda.demo.devices`.
"""
