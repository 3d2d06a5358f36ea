"""The request is not complete yet, and the program uses the array all the same."""

from mpi4py import MPI

import tcuda
from tcuda import xp

comm, main = MPI.COMM_SELF, tcuda.current_stream()
x, y = xp.full(1000, 1.0), xp.zeros(1000)
tcuda.synchronize()

request = comm.Irecv(y, source=0)  # first
if not request.Test():
    pass
# missing: request.Wait()
total = y.sum()  # second
comm.Send(x, dest=0)
request.Wait()

assert float(total) == 1000
