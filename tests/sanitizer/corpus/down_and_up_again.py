"""The upload from the page-locked buffer does not wait for the download to the buffer."""

import mmap

import numpy

import tcuda
from tcuda import xp

cudart, down, up = tcuda.cudart(), tcuda.Stream(), tcuda.Stream()
buffer = numpy.frombuffer(mmap.mmap(-1, 8192))  # 1024 numbers
tcuda.check_error(cudart.cudaHostRegister(buffer.ctypes.data, buffer.nbytes, 0))
x, y = xp.full(1024, 3.0), xp.zeros(1024)
tcuda.synchronize()

x.get(stream=down, out=buffer, blocking=False)  # first
# missing: up.wait_stream(down)
y.set(buffer, stream=up)  # second

tcuda.synchronize()
tcuda.check_error(cudart.cudaHostUnregister(buffer.ctypes.data))
assert float(y.sum()) == 3072
