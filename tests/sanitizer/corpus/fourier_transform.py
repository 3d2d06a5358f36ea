"""The transform on the side stream does not wait for the write of the signal."""

import tcuda
from tcuda import xp

main, side = tcuda.current_stream(), tcuda.Stream()
signal = xp.zeros(64)
xp.fft.rfft(signal)  # makes a plan, which waits for the device
tcuda.synchronize()

signal.fill(1)  # first
# missing: side.wait_stream(main)
with tcuda.stream(side):
    spectrum = xp.fft.rfft(signal)  # second

tcuda.synchronize()
assert abs(complex(spectrum[0]) - 64) < 1e-9
