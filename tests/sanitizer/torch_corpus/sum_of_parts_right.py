"""The main stream waits for every stream that computed a part."""

import torch

main = torch.cuda.current_stream()
streams = [torch.cuda.Stream() for _ in range(3)]
parts = torch.zeros((3, 1000), device="cuda")
torch.cuda.synchronize()

for number, stream in enumerate(streams):
    with torch.cuda.stream(stream):
        parts[number].fill_(number + 1)
for stream in streams:
    main.wait_stream(stream)
total = parts.sum()

torch.cuda.synchronize()
assert float(total) == 6000
