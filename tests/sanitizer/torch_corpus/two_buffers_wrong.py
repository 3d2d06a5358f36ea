"""The filling stream fills a buffer again, and does not wait until the main stream has read the buffer."""

import torch

main, filling = torch.cuda.current_stream(), torch.cuda.Stream()
buffers = [torch.zeros(1000, device="cuda"), torch.zeros(1000, device="cuda")]
consumed = [torch.cuda.Event(), torch.cuda.Event()]
sums = []
torch.cuda.synchronize()

for step in range(4):
    buffer, done = buffers[step % 2], consumed[step % 2]
    with torch.cuda.stream(filling):
        # missing: filling.wait_event(done)
        buffer.fill_(step)  # second
    main.wait_stream(filling)
    sums.append(buffer.sum())  # first
    done.record(main)

torch.cuda.synchronize()
assert [float(total) for total in sums] == [0, 1000, 2000, 3000]
