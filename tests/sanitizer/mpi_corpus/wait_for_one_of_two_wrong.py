"""The program waits for one of the two requests, and uses what the other one receives."""

from mpi4py import MPI

import tcuda
from tcuda import xp

comm, main = MPI.COMM_SELF, tcuda.current_stream()
x, y = xp.full(1000, 1.0), xp.zeros(1000)
tcuda.synchronize()

z = xp.zeros(1000)
tcuda.synchronize()
other = comm.Irecv(z, source=0, tag=1)
request = comm.Irecv(y, source=0, tag=2)  # first
sending = [comm.Isend(x, dest=0, tag=tag) for tag in (1, 2)]
other.Wait()
# missing: request.Wait()
total = (y + z).sum()  # second
MPI.Request.Waitall([other, request, *sending])

assert float(total) == 2000
