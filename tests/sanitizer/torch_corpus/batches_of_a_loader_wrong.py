"""The loading stream gets the memory of a dead batch, which the main stream may still read."""

import torch

main, loading = torch.cuda.current_stream(), torch.cuda.Stream()


def load(number):
    with torch.cuda.stream(loading):
        return torch.full((3007,), float(number), device="cuda")  # second


sums = []
for number in range(4):
    batch = load(number)  # freed
    main.wait_stream(loading)
    sums.append(batch.sum())  # first
    # missing: batch.record_stream(main)

torch.cuda.synchronize()
assert [float(total) for total in sums] == [0, 3007, 6014, 9021]
