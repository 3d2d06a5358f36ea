"""The program reads the NumPy array, which is page-locked, while the copy to the array may still run."""

import numpy

import tcuda
from tcuda import xp

side = tcuda.Stream()
x = xp.full(10000, 3.0)
host = numpy.zeros(10000)
tcuda.synchronize()

with tcuda.memory.pin(host):
    x.get(stream=side, out=host, blocking=False)  # first
    # missing: side.synchronize()
    total = host.sum()  # second
    side.synchronize()

assert total == 30000
