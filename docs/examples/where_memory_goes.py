"""How much memory a part of a program needs, and which line took it."""

import tcuda
from tcuda import xp

MIB = 1 << 20


def normalized(x):
    """Return the rows of x, divided by their lengths."""
    lengths = xp.sqrt((x * x).sum(axis=1, keepdims=True))
    return x / lengths


x = xp.ones((1024, 1024), dtype=xp.float32)
print(f"before: {tcuda.memory_allocated() // MIB} MiB in arrays")

with tcuda.memory.track() as usage:
    y = normalized(x)
print(f"during: {usage.peak // MIB} MiB more at the peak, {usage.current // MIB} MiB more at the end")

# A history has the line of each allocation.
tcuda.memory._record_memory_history()
z = normalized(y)
snapshot = tcuda.memory._snapshot()
tcuda.memory._record_memory_history(enabled=None)

for entry in snapshot["device_traces"][0]:
    if entry["action"] == "alloc" and entry["size"] >= MIB:
        line = next(frame["line"] for frame in entry["frames"] if frame["filename"].endswith("where_memory_goes.py"))
        print(f"line {line} allocated {entry['size'] // MIB} MiB")

del x, y, z
print(f"after: {tcuda.memory_allocated() // MIB} MiB in arrays")
