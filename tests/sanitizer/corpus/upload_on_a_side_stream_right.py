"""The main stream waits for the upload from page-locked memory."""

import numpy

import tcuda
from tcuda import xp

cudart, main, side = tcuda.cudart(), tcuda.current_stream(), tcuda.Stream()
buffer = numpy.full(1000, 3.0)
tcuda.check_error(cudart.cudaHostRegister(buffer.ctypes.data, buffer.nbytes, 0))
x = xp.zeros(1000)
tcuda.synchronize()

x.set(buffer, stream=side)
main.wait_stream(side)
total = x.sum()

tcuda.synchronize()
tcuda.check_error(cudart.cudaHostUnregister(buffer.ctypes.data))
assert float(total) == 3000
