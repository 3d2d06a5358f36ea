"""MPI adds x up while the stream may still compute x."""

from mpi4py import MPI

import tcuda
from tcuda import xp

comm, main = MPI.COMM_SELF, tcuda.current_stream()
x, y = xp.full(1000, 1.0), xp.zeros(1000)
tcuda.synchronize()

x.fill(3)  # first
# missing: main.synchronize()
comm.Allreduce(x, y)  # second

assert float(y.sum()) == 3000
