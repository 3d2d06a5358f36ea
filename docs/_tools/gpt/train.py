"""A training whose last step needs more memory than the device has: the program of ``docs/images/memory-viz.png``."""

from model import Block

import tcuda
from tcuda import xp

WIDTH, LENGTH, BLOCKS, STEPS = 128, 128, 6, 3


class Adam:
    """The optimiser, with two moments for each weight."""

    def __init__(self):
        """Create the optimiser without moments, which the first step makes."""
        self.moments = {}

    def step(self, block):
        """Change the weights of a block, and free its gradients."""
        for name, weights in block.weights.items():
            gradient = block.gradients.pop(name)
            first, second = self.moments_of(block, name)
            first += 0.1 * (gradient - first)
            second += 0.01 * (gradient * gradient - second)
            weights -= 0.001 * first / (xp.sqrt(second) + 1e-8)

    def moments_of(self, block, name):
        """Return both moments of a weight."""
        if (block, name) not in self.moments:
            weights = block.weights[name]
            self.moments[block, name] = xp.zeros_like(weights), xp.zeros_like(weights)
        return self.moments[block, name]


def forward(blocks, x):
    """Return the output of all blocks."""
    for block in blocks:
        x = block.forward(x)
    return x


def backward(blocks, gradient):
    """Set the gradients of all blocks, from the last block to the first one."""
    for block in reversed(blocks):
        gradient = block.backward(gradient)


def step(blocks, optimiser, batch, target):
    """Do one step of the training."""
    difference = forward(blocks, batch) - target
    backward(blocks, difference / len(batch))
    for block in blocks:
        optimiser.step(block)


def texts(count):
    """Return a batch of texts and its target."""
    return xp.random.standard_normal((2, count, LENGTH, WIDTH), dtype="float32")


def main():
    """Train until a batch is too large, and write a snapshot there."""
    tcuda.memory._record_memory_history(max_entries=100_000)
    blocks = [Block(WIDTH) for _ in range(BLOCKS)]
    optimiser = Adam()
    for _ in range(STEPS):
        step(blocks, optimiser, *texts(20))
    try:
        step(blocks, optimiser, *texts(32))
    except tcuda.OutOfMemoryError:
        tcuda.memory._dump_snapshot("snapshot.pickle")


if __name__ == "__main__":
    main()
