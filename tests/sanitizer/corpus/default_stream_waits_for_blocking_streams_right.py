"""The default stream waits for the work of a blocking stream by itself."""

import ctypes

import tcuda
from tcuda import xp

handle = ctypes.c_void_p()
tcuda.check_error(tcuda.cudart().cudaStreamCreate(ctypes.addressof(handle)))
blocking = tcuda.ExternalStream(handle.value)
x, y = xp.zeros(1000), xp.zeros(1000)
tcuda.synchronize()

with tcuda.stream(blocking):
    x.fill(3)
xp.multiply(x, 2, out=y)

tcuda.synchronize()
assert float(y.sum()) == 6000
tcuda.check_error(tcuda.cudart().cudaStreamDestroy(handle.value))
