"""The program waits for each start of the request."""

from mpi4py import MPI

import tcuda
from tcuda import xp

comm, main = MPI.COMM_SELF, tcuda.current_stream()
x, y = xp.full(1000, 1.0), xp.zeros(1000)
tcuda.synchronize()

request = comm.Recv_init(y, source=0)
request.Start()
comm.Send(x, dest=0)
request.Wait()
request.Start()
comm.Send(x, dest=0)
request.Wait()
total = y.sum()
request.Wait()
request.Free()

assert float(total) == 1000
