"""The program changes the page-locked buffer while the device may still read the buffer."""

import numpy

import tcuda
from tcuda import xp

cudart, side = tcuda.cudart(), tcuda.Stream()
buffer = numpy.full(1000, 3.0)
tcuda.check_error(cudart.cudaHostRegister(buffer.ctypes.data, buffer.nbytes, 0))
x = xp.zeros(1000)
tcuda.synchronize()

x.set(buffer, stream=side)  # first
# missing: side.synchronize()
buffer[:] = 100  # second

tcuda.synchronize()
tcuda.check_error(cudart.cudaHostUnregister(buffer.ctypes.data))
assert float(x.sum()) == 3000
