"""The program writes to the array that is sent, and has not waited for the request."""

from mpi4py import MPI

import tcuda
from tcuda import xp

comm, main = MPI.COMM_SELF, tcuda.current_stream()
x, y = xp.full(1000, 1.0), xp.zeros(1000)
tcuda.synchronize()

receiving = comm.Irecv(y, source=0)
request = comm.Isend(x, dest=0)  # first
# missing: request.Wait()
x.fill(0)  # second
request.Wait()
receiving.Wait()

assert float(y.sum()) == 1000
