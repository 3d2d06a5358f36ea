"""The loop leaves out the first stream, so the sum may miss a part."""

import torch

main = torch.cuda.current_stream()
streams = [torch.cuda.Stream() for _ in range(3)]
parts = torch.zeros((3, 1000), device="cuda")
torch.cuda.synchronize()

for number, stream in enumerate(streams):
    with torch.cuda.stream(stream):
        parts[number].fill_(number + 1)  # first
for stream in streams[1:]:
    main.wait_stream(stream)
# missing: main.wait_stream(streams[0])
total = parts.sum()  # second

torch.cuda.synchronize()
assert float(total) == 6000
