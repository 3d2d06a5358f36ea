"""A temporary array of the main stream dies while the side stream may still read the array."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.full((3017,), 2.0, device="cuda")


def add_on_side(array):
    side.wait_stream(main)
    with torch.cuda.stream(side):
        result = array + 1  # first
    # missing: array.record_stream(side)
    return result


y = add_on_side(x * 10)  # freed
z = x * 0  # second

torch.cuda.synchronize()
assert float(y.sum()) == 63_357
assert float(z.sum()) == 0
