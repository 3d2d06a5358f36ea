"""The program reads the page-locked buffer while the copy to the buffer may still run."""

import mmap

import numpy

import tcuda
from tcuda import xp

cudart, side = tcuda.cudart(), tcuda.Stream()
buffer = numpy.frombuffer(mmap.mmap(-1, 8192))  # 1024 numbers
tcuda.check_error(cudart.cudaHostRegister(buffer.ctypes.data, buffer.nbytes, 0))
x = xp.full(1024, 3.0)
tcuda.synchronize()

x.get(stream=side, out=buffer, blocking=False)  # first
# missing: side.synchronize()
total = buffer.sum()  # second

tcuda.synchronize()
tcuda.check_error(cudart.cudaHostUnregister(buffer.ctypes.data))
assert total == 3072
