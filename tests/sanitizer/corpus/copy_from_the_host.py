"""The program changes the page-locked buffer while the device may still read the buffer."""

import mmap

import numpy

import tcuda
from tcuda import xp

cudart, side = tcuda.cudart(), tcuda.Stream()
buffer = numpy.frombuffer(mmap.mmap(-1, 8192))  # 1024 numbers
buffer[:] = 3
tcuda.check_error(cudart.cudaHostRegister(buffer.ctypes.data, buffer.nbytes, 0))
x = xp.zeros(1024)
tcuda.synchronize()

x.set(buffer, stream=side)  # first
# missing: side.synchronize()
buffer[:] = 100  # second

tcuda.synchronize()
tcuda.check_error(cudart.cudaHostUnregister(buffer.ctypes.data))
assert float(x.sum()) == 3072
