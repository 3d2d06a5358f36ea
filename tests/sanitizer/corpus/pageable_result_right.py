"""A copy to memory that is not page-locked is complete when the call returns, also without a wait of the program."""

import numpy

import tcuda
from tcuda import xp

side = tcuda.Stream()
x, small = xp.full(10000, 3.0), xp.full(1, 3.0)
host, one = numpy.zeros(10000), numpy.zeros(1)
tcuda.synchronize()

x.get(stream=side, out=host, blocking=False)
assert host.sum() == 30000
small.get(stream=side, out=one, blocking=False)
assert one[0] == 3
