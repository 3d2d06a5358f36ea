"""The default stream waits for the work of a blocking stream by itself."""

import ctypes

import torch

handle = ctypes.c_void_p()
torch.cuda.check_error(torch.cuda.cudart().cudaStreamCreate(ctypes.addressof(handle)))
blocking = torch.cuda.ExternalStream(handle.value)
x, y = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

with torch.cuda.stream(blocking):
    x.fill_(3)
torch.mul(x, 2, out=y)

torch.cuda.synchronize()
assert float(y.sum()) == 6000
torch.cuda.check_error(torch.cuda.cudart().cudaStreamDestroy(handle.value))
