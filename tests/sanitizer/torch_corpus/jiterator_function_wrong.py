"""The side stream computes with x in a kernel of the jiterator, and does not wait for the write of x."""

import torch

code = "template <typename T> T twice(T x) { return 2 * x; }"
twice = torch.cuda.jiterator._create_jit_fn(code)
main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

x.fill_(3)  # first
# missing: side.wait_stream(main)
with torch.cuda.stream(side):
    y = twice(x)  # second

torch.cuda.synchronize()
assert float(y.sum()) == 6000
