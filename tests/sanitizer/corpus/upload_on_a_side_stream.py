"""The main stream reads x while the upload of x from page-locked memory may still run."""

import mmap

import numpy

import tcuda
from tcuda import xp

cudart, main, side = tcuda.cudart(), tcuda.current_stream(), tcuda.Stream()
buffer = numpy.frombuffer(mmap.mmap(-1, 8192))  # 1024 numbers
buffer[:] = 3
tcuda.check_error(cudart.cudaHostRegister(buffer.ctypes.data, buffer.nbytes, 0))
x = xp.zeros(1024)
tcuda.synchronize()

x.set(buffer, stream=side)  # first
# missing: main.wait_stream(side)
total = x.sum()  # second

tcuda.synchronize()
tcuda.check_error(cudart.cudaHostUnregister(buffer.ctypes.data))
assert float(total) == 3072
