"""An array in a pool of the program dies while another stream may still read the array."""

import torch

main, side, pool = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    x = torch.full((3015,), 2.0, device="cuda")
side.wait_stream(main)
with torch.cuda.stream(side):
    y = x + 1  # first
# missing: x.record_stream(side)
del x  # freed
with torch.cuda.use_mem_pool(pool):
    z = torch.zeros(3015, device="cuda")  # second

torch.cuda.synchronize()
assert float(y.sum()) == 9045
assert float(z.sum()) == 0
del z
