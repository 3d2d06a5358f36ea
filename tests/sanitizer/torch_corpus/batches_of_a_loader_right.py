"""Each batch is recorded on the main stream, so the loading stream does not get its memory too early."""

import torch

main, loading = torch.cuda.current_stream(), torch.cuda.Stream()


def load(number):
    with torch.cuda.stream(loading):
        return torch.full((3007,), float(number), device="cuda")


sums = []
for number in range(4):
    batch = load(number)
    main.wait_stream(loading)
    sums.append(batch.sum())
    batch.record_stream(main)

torch.cuda.synchronize()
assert [float(total) for total in sums] == [0, 3007, 6014, 9021]
