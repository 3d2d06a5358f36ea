"""The per-thread default stream is a blocking stream, so the legacy default stream waits for its work."""

import torch

x, y = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(torch.cuda.ExternalStream(2)):  # cudaStreamPerThread
    x.fill_(3)
torch.mul(x, 2, out=y)

torch.cuda.synchronize()
assert float(y.sum()) == 6000
