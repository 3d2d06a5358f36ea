"""How long work takes on the device, measured by events."""

import tcuda
from tcuda import xp

x = xp.ones((1000, 1000), dtype=xp.float32)
x @ x  # the first call also loads libraries and compiles kernels

names = ("product", "square root", "sum")
marks = [tcuda.Event(enable_timing=True) for _ in range(len(names) + 1)]
marks[0].record()
y = x @ x
marks[1].record()
y = xp.sqrt(y)
marks[2].record()
total = y.sum()
marks[3].record()

# Nothing has waited so far. The times are known when the last event is complete.
marks[-1].synchronize()
for name, start, end in zip(names, marks, marks[1:], strict=False):
    print(f"{name:12} {start.elapsed_time(end):6.3f} ms")
print(f"{'together':12} {marks[0].elapsed_time(marks[-1]):6.3f} ms")

# float() makes the program wait. A counter finds such lines.
with tcuda.SyncCounter() as syncs:
    assert round(float(total) / 1e6, 1) == 31.6
for row in syncs.counts():
    print(f"{row['call']} waited in line {row['line']}")
