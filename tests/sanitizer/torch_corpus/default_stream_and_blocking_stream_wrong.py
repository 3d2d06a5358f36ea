"""A non-blocking stream does not wait for the work of the default stream by itself."""

import ctypes

import torch

handle = ctypes.c_void_p()
torch.cuda.check_error(torch.cuda.cudart().cudaStreamCreate(ctypes.addressof(handle)))
main, side = torch.cuda.default_stream(), torch.cuda.Stream()
x, y = torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

x.fill_(3)  # first
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    torch.mul(x, 2, out=y)  # second

torch.cuda.synchronize()
assert float(y.sum()) == 6000
torch.cuda.check_error(torch.cuda.cudart().cudaStreamDestroy(handle.value))
