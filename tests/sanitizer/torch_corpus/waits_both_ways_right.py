"""Each of two streams waits for the other before its next step."""

import torch

ping, pong = torch.cuda.Stream(), torch.cuda.Stream()
x = torch.zeros(1000, device="cuda")
torch.cuda.synchronize()

for _ in range(3):
    with torch.cuda.stream(ping):
        ping.wait_stream(pong)
        x += 1
    with torch.cuda.stream(pong):
        pong.wait_stream(ping)
        x *= 2

torch.cuda.synchronize()
assert float(x.sum()) == 14_000
