"""The temporary array gets a name and is recorded on the side stream."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
x = torch.full((3017,), 2.0, device="cuda")


def add_on_side(array):
    side.wait_stream(main)
    with torch.cuda.stream(side):
        result = array + 1
    array.record_stream(side)
    return result


y = add_on_side(x * 10)
z = x * 0

torch.cuda.synchronize()
assert float(y.sum()) == 63_357
assert float(z.sum()) == 0
