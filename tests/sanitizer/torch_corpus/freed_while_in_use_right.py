"""The allocator knows that the side stream uses x, so the memory of x stays in use until the side stream is done."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.full((3001,), 2.0, device="cuda")
side.wait_stream(main)
with torch.cuda.stream(side):
    y = x + 1
x.record_stream(side)
del x
z = torch.zeros(3001, device="cuda")

torch.cuda.synchronize()
assert float(y.sum()) == 9003
assert float(z.sum()) == 0
