"""Two streams copy to the same page-locked buffer, and no wait says which copy is the last."""

import numpy

import tcuda
from tcuda import xp

cudart, one, two = tcuda.cudart(), tcuda.Stream(), tcuda.Stream()
buffer = numpy.zeros(1000)
tcuda.check_error(cudart.cudaHostRegister(buffer.ctypes.data, buffer.nbytes, 0))
x, y = xp.full(1000, 1.0), xp.full(1000, 2.0)
tcuda.synchronize()

x.get(stream=one, out=buffer, blocking=False)  # first
# missing: two.wait_stream(one)
y.get(stream=two, out=buffer, blocking=False)  # second

tcuda.synchronize()
tcuda.check_error(cudart.cudaHostUnregister(buffer.ctypes.data))
assert buffer.sum() == 2000
