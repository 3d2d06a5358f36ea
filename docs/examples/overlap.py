"""Copies on one stream while another stream computes, with two buffers on the device."""

import numpy

import tcuda
from tcuda import xp

ROUNDS, SIZE = 6, 1_000_000

# Only page-locked memory of the host can be copied while the program goes on.
host = numpy.ones((ROUNDS, SIZE), dtype=numpy.float32)
cudart = tcuda.cudart()
tcuda.check_error(int(cudart.cudaHostRegister(host.ctypes.data, host.nbytes, 0)))

copies, work = tcuda.Stream(), tcuda.Stream()
buffers = [xp.zeros(SIZE, dtype=xp.float32) for _ in range(2)]
copied, used = [tcuda.Event() for _ in range(2)], [tcuda.Event() for _ in range(2)]
totals = xp.zeros(ROUNDS)
tcuda.synchronize()  # the zeros are written

for step in range(ROUNDS):
    slot = step % 2
    with tcuda.stream(copies):
        used[slot].wait()  # the work of two rounds ago has read the buffer; at first, there is nothing to wait for
        buffers[slot].set(host[step])
        copied[slot].record()
    with tcuda.stream(work):
        copied[slot].wait()
        totals[step] = xp.sqrt(buffers[slot]).sum()
        used[slot].record()

work.synchronize()
print(totals.get().tolist())
tcuda.check_error(int(cudart.cudaHostUnregister(host.ctypes.data)))
