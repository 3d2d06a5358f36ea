"""MPI and the device both read the array, so nobody has to wait."""

from mpi4py import MPI

import tcuda
from tcuda import xp

comm, main = MPI.COMM_SELF, tcuda.current_stream()
x, y = xp.full(1000, 1.0), xp.zeros(1000)
tcuda.synchronize()

receiving = comm.Irecv(y, source=0)
request = comm.Isend(x, dest=0)
total = x.sum()
MPI.Request.Waitall([request, receiving])
assert float(total) == float(y.sum()) == 1000
