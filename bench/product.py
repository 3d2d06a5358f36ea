"""Measures a kernel on emulated devices, a tiled product of 512 x 512: ``python bench/product.py``."""

from __future__ import annotations

import time

import numpy

import tcuda

SIZE = 512
TILES = (16, 32)

SOURCE = r"""
extern "C" __global__ void product(const float* a, const float* b, float* c, int n) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int start = 0; start < n; start += TILE) {
        left[threadIdx.y][threadIdx.x] = a[row * n + start + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(start + threadIdx.y) * n + column];
        __syncthreads();
        for (int i = 0; i < TILE; ++i)
            sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
"""

LAUNCHES = 10


def measure(tile: int) -> tuple[float, float]:
    """Return the seconds of the fastest launch, by the clock on the wall and by the time of the processor."""
    xp = tcuda.xp
    product = xp.RawKernel(SOURCE, "product", options=(f"-DTILE={tile}",))
    factors = numpy.random.default_rng(0).standard_normal((2, SIZE, SIZE), numpy.float32)
    a, b, c = xp.array(factors[0]), xp.array(factors[1]), xp.zeros((SIZE, SIZE), xp.float32)
    product.compile()
    wall, processor = [], []
    for _ in range(LAUNCHES):
        start = time.perf_counter(), time.thread_time()
        product((SIZE // tile, SIZE // tile), (tile, tile), (a, b, c, numpy.int32(SIZE)))
        wall.append(time.perf_counter() - start[0])
        processor.append(time.thread_time() - start[1])
    numpy.testing.assert_allclose(c.get(), factors[0] @ factors[1], rtol=1e-3, atol=1e-3)
    return min(wall), min(processor)


def main() -> None:
    """Print the times. The two clocks differ if other programs use the processor."""
    tcuda.emulation.enable(1)
    for tile in TILES:
        wall, processor = measure(tile)
        print(f"tiles of {tile} x {tile}: {wall:.2f} s, {processor:.2f} s of the processor")


if __name__ == "__main__":
    main()
