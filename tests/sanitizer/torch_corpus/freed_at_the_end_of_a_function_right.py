"""The function tells the allocator about the side stream before its local array dies."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()


def total():
    local = torch.full((3003,), 2.0, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        result = local.sum()
    local.record_stream(side)
    return result


result = total()
z = torch.zeros(3003, device="cuda")

torch.cuda.synchronize()
assert float(result) == 6006
assert float(z.sum()) == 0
