"""The upload overwrites the array while a kernel may still read it."""

import mmap

import numpy

import tcuda
from tcuda import xp

up, one = tcuda.Stream(), tcuda.Stream()
cudart, buffer = tcuda.cudart(), numpy.frombuffer(mmap.mmap(-1, 8192))  # 1024 numbers
tcuda.check_error(cudart.cudaHostRegister(buffer.ctypes.data, buffer.nbytes, 0))
x = xp.ones(1024)
tcuda.synchronize()

with tcuda.stream(one):
    y = x * 2  # first
# missing: up.wait_stream(one)
x.set(buffer, stream=up)  # second
one.synchronize()
total = float(y.sum())

tcuda.synchronize()
tcuda.check_error(cudart.cudaHostUnregister(buffer.ctypes.data))
assert total == 2048
