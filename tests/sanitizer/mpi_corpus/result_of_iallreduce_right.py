"""The program waits for the request of the sum before the program uses the sum."""

from mpi4py import MPI

import tcuda
from tcuda import xp

comm, main = MPI.COMM_SELF, tcuda.current_stream()
x, y = xp.full(1000, 1.0), xp.zeros(1000)
tcuda.synchronize()

request = comm.Iallreduce(x, y)
request.Wait()
z = y * 2
request.Wait()

assert float(z.sum()) == 2000
