"""The local array dies at the end of the function, while the side stream may still read the array."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()


def total():
    local = torch.full((3003,), 2.0, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        result = local.sum()  # first
    # missing: local.record_stream(side)
    return result


result = total()  # freed
z = torch.zeros(3003, device="cuda")  # second

torch.cuda.synchronize()
assert float(result) == 6006
assert float(z.sum()) == 0
