"""The side stream copies x to the host, and does not wait until the main stream has computed x."""

import mmap

import numpy

import tcuda
from tcuda import xp

cudart, main, side = tcuda.cudart(), tcuda.current_stream(), tcuda.Stream()
buffer = numpy.frombuffer(mmap.mmap(-1, 8192))  # 1024 numbers
tcuda.check_error(cudart.cudaHostRegister(buffer.ctypes.data, buffer.nbytes, 0))
x = xp.zeros(1024)
tcuda.synchronize()

x.fill(3)  # first
# missing: side.wait_stream(main)
x.get(stream=side, out=buffer, blocking=False)  # second

tcuda.synchronize()
tcuda.check_error(cudart.cudaHostUnregister(buffer.ctypes.data))
assert buffer.sum() == 3072
