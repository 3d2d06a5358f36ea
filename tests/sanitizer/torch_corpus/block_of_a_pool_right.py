"""An array in a pool of the program is recorded on the stream that reads the array."""

import torch

main, side, pool = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    x = torch.full((3015,), 2.0, device="cuda")
side.wait_stream(main)
with torch.cuda.stream(side):
    y = x + 1
x.record_stream(side)
del x
with torch.cuda.use_mem_pool(pool):
    z = torch.zeros(3015, device="cuda")

torch.cuda.synchronize()
assert float(y.sum()) == 9045
assert float(z.sum()) == 0
del z
