"""The transform reads the signal after the write of the signal."""

import torch

main, side = torch.cuda.current_stream(), torch.cuda.Stream()
signal = torch.zeros(64, device="cuda")
torch.cuda.synchronize()

signal.fill_(1)
side.wait_stream(main)
with torch.cuda.stream(side):
    spectrum = torch.fft.rfft(signal)

torch.cuda.synchronize()
assert abs(complex(spectrum[0]) - 64) < 1e-9
