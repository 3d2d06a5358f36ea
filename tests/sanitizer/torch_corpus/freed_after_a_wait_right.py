"""The main stream waits for the side stream before x dies, so the memory of x may go to z."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.full((3011,), 2.0, device="cuda")
side.wait_stream(main)
with torch.cuda.stream(side):
    y = x + 1
main.wait_stream(side)
del x
z = torch.zeros(3011, device="cuda")

torch.cuda.synchronize()
assert float(y.sum()) == 9033
assert float(z.sum()) == 0
