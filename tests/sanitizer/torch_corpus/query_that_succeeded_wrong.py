"""The program asks once, ignores the answer, and goes on while the side stream is still busy."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.full((1000,), 1.0, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(side):
    torch.cuda._sleep(20_000_000)
    x.fill_(3)  # first
written = side.record_event()
written.query()  # False
# missing: main.wait_stream(side)
y = x * 2  # second

torch.cuda.synchronize()
assert float(y.sum()) == 6000
