"""The upload from the page-locked buffer does not wait for the download to the buffer."""

import numpy

import tcuda
from tcuda import xp

cudart, down, up = tcuda.cudart(), tcuda.Stream(), tcuda.Stream()
buffer = numpy.zeros(1000)
tcuda.check_error(cudart.cudaHostRegister(buffer.ctypes.data, buffer.nbytes, 0))
x, y = xp.full(1000, 3.0), xp.zeros(1000)
tcuda.synchronize()

x.get(stream=down, out=buffer, blocking=False)  # first
# missing: up.wait_stream(down)
y.set(buffer, stream=up)  # second

tcuda.synchronize()
tcuda.check_error(cudart.cudaHostUnregister(buffer.ctypes.data))
assert float(y.sum()) == 3000
