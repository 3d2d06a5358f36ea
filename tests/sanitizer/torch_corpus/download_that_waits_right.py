"""get() waits for its copy, so the program may change x afterwards on every stream."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.full((1000,), 3.0, device="cuda")
side.wait_stream(main)
with torch.cuda.stream(side):
    host = x.cpu()
x.fill_(0)

torch.cuda.synchronize()
assert host.sum() == 3000
