"""Work of the default stream lies between the work of two blocking streams, and orders the streams."""

import ctypes

import tcuda
from tcuda import xp

handles = [ctypes.c_void_p(), ctypes.c_void_p()]
for handle in handles:
    tcuda.check_error(tcuda.cudart().cudaStreamCreate(ctypes.addressof(handle)))
writer, reader = (tcuda.ExternalStream(handle.value) for handle in handles)
x, y, other = xp.zeros(1000), xp.zeros(1000), xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(writer):
    x.fill(3)
other.fill(1)  # work of the default stream
with tcuda.stream(reader):
    xp.multiply(x, 2, out=y)

tcuda.synchronize()
assert float(y.sum()) == 6000
for handle in handles:
    tcuda.check_error(tcuda.cudart().cudaStreamDestroy(handle.value))
