"""One stream uses and frees the memory, so the next array of this stream may have the memory at once."""

import torch

side = torch.cuda.Stream()
with torch.cuda.stream(side):
    for number in range(5):
        x = torch.full((3019,), float(number), device="cuda")
        y = x + 1
        del x

torch.cuda.synchronize()
assert float(y.sum()) == 15_095
