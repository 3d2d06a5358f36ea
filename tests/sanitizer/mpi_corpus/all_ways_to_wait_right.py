"""Each way to wait for requests, or to test them, orders what comes after it."""

from mpi4py import MPI

import tcuda
from tcuda import xp

comm, main = MPI.COMM_SELF, tcuda.current_stream()
x, y = xp.full(1000, 1.0), xp.zeros(1000)
tcuda.synchronize()


def until(test):
    while not test():
        pass


def some(call, requests):
    left = len(requests)
    while left:
        left -= len(call(requests) or ())


ways = [
    lambda requests: [request.Wait() for request in requests],
    MPI.Request.Waitall,
    lambda requests: [MPI.Request.Waitany(requests) for _ in requests],
    lambda requests: some(MPI.Request.Waitsome, requests),
    lambda requests: [until(request.Test) for request in requests],
    lambda requests: until(lambda: MPI.Request.Testall(requests)),
    lambda requests: [until(lambda: MPI.Request.Testany(requests)[1]) for _ in requests],
    lambda requests: some(MPI.Request.Testsome, requests),
    lambda requests: [until(request.Get_status) for request in requests] and MPI.Request.Waitall(requests),
]
for number, wait in enumerate(ways):
    x.fill(number)
    main.synchronize()
    wait([comm.Irecv(y, source=0), comm.Isend(x, dest=0)])
    y += 1
    x += 1
    main.synchronize()
    assert float(y[0]) == number + 1
