"""The program reads the page-locked buffer while the copy to the buffer may still run."""

import numpy

import tcuda
from tcuda import xp

cudart, side = tcuda.cudart(), tcuda.Stream()
buffer = numpy.zeros(1000)
tcuda.check_error(cudart.cudaHostRegister(buffer.ctypes.data, buffer.nbytes, 0))
x = xp.full(1000, 3.0)
tcuda.synchronize()

x.get(stream=side, out=buffer, blocking=False)  # first
# missing: side.synchronize()
total = buffer.sum()  # second

tcuda.synchronize()
tcuda.check_error(cudart.cudaHostUnregister(buffer.ctypes.data))
assert total == 3000
