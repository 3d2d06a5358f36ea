"""Two blocking streams do not wait for each other if the default stream has no work in between."""

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
    x.fill(3)  # first
# missing: reader.wait_stream(writer)
with tcuda.stream(reader):
    xp.multiply(x, 2, out=y)  # second

tcuda.synchronize()
assert float(y.sum()) == 6000
for handle in handles:
    tcuda.check_error(tcuda.cudart().cudaStreamDestroy(handle.value))
