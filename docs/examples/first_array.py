"""The first array, and a stream of its own for part of the work."""

import numpy

import tcuda
from tcuda import xp  # cupy, or its emulated counterpart

# The array lies on the current device. The copy and the square run on the current stream.
x = xp.asarray(numpy.arange(6, dtype=numpy.float32).reshape(2, 3))
squares = x * x

# Work on another stream may run at the same time. So the other stream waits for the array first.
side = tcuda.Stream()
side.wait_stream(tcuda.current_stream())
with tcuda.stream(side):
    sums = squares.sum(axis=1)

# The default stream reads the sums, so it waits for the side stream. The program goes on at once.
tcuda.current_stream().wait_stream(side)
doubled = sums * 2

# A copy to the host waits for the stream, and then the program has the numbers.
print(doubled.get())
print(f"{x.nbytes} bytes on {x.device}")
