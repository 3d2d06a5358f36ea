"""The copy to the host does not wait for the second write."""

import mmap

import numpy

import tcuda
from tcuda import xp

main, down = tcuda.current_stream(), tcuda.Stream()
cudart, buffer = tcuda.cudart(), numpy.frombuffer(mmap.mmap(-1, 8192))  # 1024 numbers
tcuda.check_error(cudart.cudaHostRegister(buffer.ctypes.data, buffer.nbytes, 0))
x = xp.zeros(1024)
tcuda.synchronize()

x.fill(1)
down.wait_stream(main)
x.fill(2)  # first
# missing: down.wait_stream(main)
x.get(stream=down, out=buffer, blocking=False)  # second

tcuda.synchronize()
tcuda.check_error(cudart.cudaHostUnregister(buffer.ctypes.data))
assert buffer.sum() == 2048
