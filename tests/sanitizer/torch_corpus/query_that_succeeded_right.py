"""The program asks until the event is complete. A successful query orders as a wait does."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.full((1000,), 1.0, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(side):
    torch.cuda._sleep(20_000_000)
    x.fill_(3)
written = side.record_event()
while not written.query():
    pass
y = x * 2

torch.cuda.synchronize()
assert float(y.sum()) == 6000
