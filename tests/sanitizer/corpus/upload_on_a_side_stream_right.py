"""The main stream waits for the upload from page-locked memory."""

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

x.set(buffer, stream=side)
main.wait_stream(side)
total = x.sum()

tcuda.synchronize()
tcuda.check_error(cudart.cudaHostUnregister(buffer.ctypes.data))
assert float(total) == 3072
