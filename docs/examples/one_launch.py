"""Many small kernels in a graph, which one call launches."""

import tcuda
from tcuda import xp

STEPS = 20


def heat(field):
    """Let the heat of a rod flow for some steps."""
    for _ in range(STEPS):
        field[1:-1] += 0.25 * (field[:-2] - 2 * field[1:-1] + field[2:])


rod = xp.zeros(101)
rod[50] = 1  # the middle is hot
heat(rod)  # compiles the kernels
expected = rod.copy()

graph = tcuda.CUDAGraph()
with tcuda.graph(graph):
    heat(rod)  # captured, not executed

rod[...] = 0
rod[50] = 1
graph.replay()  # one launch in place of about 100
print("the same bits:", bool((rod == expected).all()))

for _ in range(10):
    graph.replay()
print(f"{float(rod.max()):.4f} of the heat is in the middle after {11 * STEPS} steps")
