"""The program sends the page-locked array while the copy to the array may still run."""

from mpi4py import MPI

import tcuda
from tcuda import xp

comm, main = MPI.COMM_SELF, tcuda.current_stream()
x, y = xp.full(1000, 1.0), xp.zeros(1000)
tcuda.synchronize()

host, received = tcuda.memory.zeros_pinned(1000), tcuda.memory.zeros_pinned(1000)
receiving = comm.Irecv(received, source=0)
x.get(stream=main, out=host, blocking=False)  # first
# missing: main.synchronize()
sending = comm.Isend(host, dest=0)  # second
MPI.Request.Waitall([sending, receiving])
main.synchronize()

assert received.sum() == 1000
