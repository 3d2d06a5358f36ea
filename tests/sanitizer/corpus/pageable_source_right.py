"""CUDA has read memory that is not page-locked when the call returns, so the program may change the array."""

import numpy

import tcuda
from tcuda import xp

side = tcuda.Stream()
x = xp.zeros(10000)
host = numpy.ones(10000)
tcuda.synchronize()

x.set(host, stream=side)
host[:] = 2

tcuda.synchronize()
assert float(x.sum()) == 10000
