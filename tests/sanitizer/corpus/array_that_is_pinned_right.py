"""The program waits for the copy to the NumPy array, which is page-locked, and then reads the array."""

import numpy

import tcuda
from tcuda import xp

side = tcuda.Stream()
x = xp.full(10000, 3.0)
host = numpy.zeros(10000)
tcuda.synchronize()

with tcuda.memory.pin(host):
    x.get(stream=side, out=host, blocking=False)
    side.synchronize()
    total = host.sum()
    side.synchronize()

assert total == 30000
