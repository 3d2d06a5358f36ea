"""The program waits for both requests."""

from mpi4py import MPI

import tcuda
from tcuda import xp

comm, main = MPI.COMM_SELF, tcuda.current_stream()
x, y = xp.full(1000, 1.0), xp.zeros(1000)
tcuda.synchronize()

z = xp.zeros(1000)
tcuda.synchronize()
other = comm.Irecv(z, source=0, tag=1)
request = comm.Irecv(y, source=0, tag=2)
sending = [comm.Isend(x, dest=0, tag=tag) for tag in (1, 2)]
MPI.Request.Waitall([other, request])
total = (y + z).sum()
MPI.Request.Waitall([other, request, *sending])

assert float(total) == 2000
