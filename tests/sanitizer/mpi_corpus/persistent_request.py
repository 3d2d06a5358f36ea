"""The program waits for the first start of the request, and not for the second one."""

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
request.Start()  # first
comm.Send(x, dest=0)
# missing: request.Wait()
total = y.sum()  # second
request.Wait()
request.Free()

assert float(total) == 1000
