"""The request is not complete yet, so the program waits before the program uses what is received."""

from mpi4py import MPI

import tcuda
from tcuda import xp

comm, main = MPI.COMM_SELF, tcuda.current_stream()
x, y = xp.full(1000, 1.0), xp.zeros(1000)
tcuda.synchronize()

request = comm.Irecv(y, source=0)
if not request.Test():
    comm.Send(x, dest=0)
    request.Wait()
total = y.sum()
request.Wait()

assert float(total) == 1000
