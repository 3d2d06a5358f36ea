"""Two streams read x at the same time. Nothing writes x, so no wait is needed between the streams."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.ones(1000, device="cuda")
side.wait_stream(main)

y = x + 1
with torch.cuda.stream(side):
    z = x + 2

torch.cuda.synchronize()
assert float(y.sum()) == 2000
assert float(z.sum()) == 3000
