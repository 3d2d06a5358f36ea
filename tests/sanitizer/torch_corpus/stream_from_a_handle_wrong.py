"""The handle is that of another stream, which does not wait for the first."""

import torch

stream, other = torch.cuda.Stream(), torch.cuda.Stream()
same = torch.cuda.ExternalStream(other.cuda_stream)
x, y = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(stream):
    x.fill_(3)  # first
# missing: same.wait_stream(stream)
with torch.cuda.stream(same):
    torch.mul(x, 2, out=y)  # second

torch.cuda.synchronize()
assert float(y.sum()) == 6000
