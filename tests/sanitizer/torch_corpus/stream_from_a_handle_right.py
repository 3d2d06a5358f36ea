"""Two objects with the same handle are the same stream."""

import torch

stream, other = torch.cuda.Stream(), torch.cuda.Stream()
same = torch.cuda.ExternalStream(stream.cuda_stream)
x, y = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(stream):
    x.fill_(3)
with torch.cuda.stream(same):
    torch.mul(x, 2, out=y)

torch.cuda.synchronize()
assert float(y.sum()) == 6000
