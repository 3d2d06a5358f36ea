"""Two graphs share the memory of one pool, and may run at the same time."""

import tcuda
from tcuda import xp

one, two, pool = tcuda.Stream(), tcuda.Stream(), tcuda.graph_pool_handle()
x, y, z = xp.ones(5000), xp.zeros(5000), xp.zeros(5000)
first, second = tcuda.CUDAGraph(), tcuda.CUDAGraph()
with tcuda.graph(first, pool=pool):
    xp.add(x * 2, 1, out=y)  # first
with tcuda.graph(second, pool=pool):
    xp.add(x * 5, 1, out=z)  # second
tcuda.synchronize()

with tcuda.stream(one):
    first.replay()  # first launch
# missing: two.wait_stream(one)
with tcuda.stream(two):
    second.replay()  # second launch

tcuda.synchronize()
assert float(y.sum()) == 15_000
assert float(z.sum()) == 30_000
