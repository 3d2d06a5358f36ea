"""Work of the default stream lies between the work of two blocking streams, and orders the streams."""

import ctypes

import torch

handles = [ctypes.c_void_p(), ctypes.c_void_p()]
for handle in handles:
    torch.cuda.check_error(torch.cuda.cudart().cudaStreamCreate(ctypes.addressof(handle)))
writer, reader = (torch.cuda.ExternalStream(handle.value) for handle in handles)
x, y, other = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(writer):
    x.fill_(3)
other.fill_(1)  # work of the default stream
with torch.cuda.stream(reader):
    torch.mul(x, 2, out=y)

torch.cuda.synchronize()
assert float(y.sum()) == 6000
for handle in handles:
    torch.cuda.check_error(torch.cuda.cudart().cudaStreamDestroy(handle.value))
