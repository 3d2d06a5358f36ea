"""k-means: groups points of the plain into clusters, by array functions or by two kernels.

python kmeans.py [--kernels] [--points 2000] [--clusters 5]
"""

import argparse

import cupy as cp
import numpy as np

squared_distance = cp.ElementwiseKernel(
    "T x, T y, T centre_x, T centre_y",
    "T distance",
    """
    T dx = x - centre_x, dy = y - centre_y;
    distance = dx * dx + dy * dy;
    """,
    "squared_distance",
)

sum_of_members = cp.ReductionKernel(
    "T value, bool member", "float64 total", "member ? value : T(0)", "a + b", "total = a", "0", "sum_of_members"
)


def distances(points, centres, kernels=False):
    """Return the square of the distance of each point from each centre."""
    if kernels:
        x, y = points[:, 0, None], points[:, 1, None]
        return squared_distance(x, y, centres[None, :, 0], centres[None, :, 1])
    return ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)


def means(points, labels, count, kernels=False):
    """Return the mean of the points of each cluster."""
    xp = cp.get_array_module(points)
    members = labels[None, :] == xp.arange(count)[:, None]
    if kernels:
        sums = [sum_of_members(points[None, :, axis], members, axis=1) for axis in range(2)]
    else:
        sums = [xp.where(members, points[None, :, axis], 0).sum(axis=1) for axis in range(2)]
    return xp.stack(sums, axis=1) / xp.maximum(members.sum(axis=1), 1)[:, None]


def fit(points, centres, kernels=False, most=100):
    """Return the centres of the clusters, the cluster of each point, and the number of iterations."""
    xp = cp.get_array_module(points)
    labels = xp.zeros(len(points), dtype=int)
    for iteration in range(1, most + 1):
        new = xp.argmin(distances(points, centres, kernels), axis=1)
        if iteration > 1 and bool((new == labels).all()):
            break
        labels = new
        centres = means(points, labels, len(centres), kernels)
    return centres, labels, iteration


def clouds(count, clusters):
    """Return random points around some centres, and a first guess of the centres, in arrays of NumPy."""
    random = np.random.default_rng(0)
    middles = random.uniform(-10, 10, (clusters, 2))
    points = middles[random.integers(clusters, size=count)] + random.normal(size=(count, 2))
    return points, points[random.choice(count, clusters, replace=False)]


def main():
    """Run the program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernels", action="store_true", help="use the kernels")
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--clusters", type=int, default=5)
    options = parser.parse_args()
    points, centres = (cp.asarray(array) for array in clouds(options.points, options.clusters))
    centres, labels, iterations = fit(points, centres, options.kernels)
    sizes = cp.bincount(labels, minlength=options.clusters)
    print(f"{iterations} iterations")
    for size, (x, y) in zip(sizes.tolist(), centres.tolist(), strict=True):
        print(f"{size} points around {x:.6f} {y:.6f}")


if __name__ == "__main__":
    main()
