"""The program uses what is received, and has not waited for the request."""

from mpi4py import MPI

import tcuda
from tcuda import xp

comm, main = MPI.COMM_SELF, tcuda.current_stream()
x, y = xp.full(1000, 1.0), xp.zeros(1000)
tcuda.synchronize()

request = comm.Irecv(y, source=0)  # first
sending = comm.Isend(x, dest=0)
# missing: request.Wait()
total = y.sum()  # second
MPI.Request.Waitall([sending, request])

assert float(total) == 1000
