"""The collectives of one rank, each after a wait for the stream, and before a wait for the request."""

from mpi4py import MPI

import tcuda
from tcuda import xp

comm, main = MPI.COMM_SELF, tcuda.current_stream()
x, y = xp.full(1000, 1.0), xp.zeros(1000)
tcuda.synchronize()


def wait(request):
    if request is not None:
        request.Wait()


for kind in ("", "I"):
    for name, *arguments in [
        ("bcast", x, 0),
        ("reduce", x, y, MPI.SUM, 0),
        ("allreduce", x, y),
        ("allreduce", MPI.IN_PLACE, y),
        ("scan", x, y),
        ("gather", x, y, 0),
        ("scatter", x, y, 0),
        ("allgather", x, y),
        ("allgatherv", x, [y, [1000], [0], MPI.DOUBLE]),
        ("gatherv", x, [y, [1000], [0], MPI.DOUBLE], 0),
        ("scatterv", [x, [1000], [0], MPI.DOUBLE], y, 0),
        ("alltoall", x, y),
        ("alltoallv", [x, [1000], [0], MPI.DOUBLE], [y, [1000], [0], MPI.DOUBLE]),
        ("reduce_scatter", x, y, [1000]),
        ("reduce_scatter_block", x, y),
    ]:
        x.fill(2)
        main.synchronize()
        wait(getattr(comm, kind + (name if kind else name.capitalize()))(*arguments))
        x += 1
        y += 1
        main.synchronize()
assert float(y[0]) == 3
