"""Two streams copy to the same page-locked buffer, and no wait says which copy is the last."""

import mmap

import numpy

import tcuda
from tcuda import xp

cudart, one, two = tcuda.cudart(), tcuda.Stream(), tcuda.Stream()
buffer = numpy.frombuffer(mmap.mmap(-1, 8192))  # 1024 numbers
tcuda.check_error(cudart.cudaHostRegister(buffer.ctypes.data, buffer.nbytes, 0))
x, y = xp.full(1024, 1.0), xp.full(1024, 2.0)
tcuda.synchronize()

x.get(stream=one, out=buffer, blocking=False)  # first
# missing: two.wait_stream(one)
y.get(stream=two, out=buffer, blocking=False)  # second

tcuda.synchronize()
tcuda.check_error(cudart.cudaHostUnregister(buffer.ctypes.data))
assert buffer.sum() == 2048
