"""The program uses the sum, and has not waited for the request of the sum."""

from mpi4py import MPI

import tcuda
from tcuda import xp

comm, main = MPI.COMM_SELF, tcuda.current_stream()
x, y = xp.full(1000, 1.0), xp.zeros(1000)
tcuda.synchronize()

request = comm.Iallreduce(x, y)  # first
# missing: request.Wait()
z = y * 2  # second
request.Wait()

assert float(z.sum()) == 2000
