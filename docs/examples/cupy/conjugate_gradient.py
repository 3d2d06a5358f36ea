"""Conjugate gradient: solves a system of linear equations with a symmetric positive definite matrix.

python conjugate_gradient.py [--size 200] [--device 0]
"""

import argparse

import cupy as cp
import numpy as np


def solve(matrix, vector, tolerance=1e-10):
    """Return the solution, and the number of iterations."""
    xp = cp.get_array_module(matrix)
    solution = xp.zeros_like(vector)
    residual = vector - matrix @ solution
    direction = residual.copy()
    squared = xp.dot(residual, residual)
    limit = (tolerance * float(xp.linalg.norm(vector))) ** 2
    for iteration in range(1, 10 * len(vector)):
        product = matrix @ direction
        step = squared / xp.dot(direction, product)
        solution += step * direction
        residual -= step * product
        before, squared = squared, xp.dot(residual, residual)
        if float(squared) < limit:
            return solution, iteration
        direction = residual + squared / before * direction
    raise ArithmeticError("The iteration does not converge.")


def system(size):
    """Return a random matrix and a random vector, in arrays of NumPy."""
    random = np.random.default_rng(0)
    half = random.normal(size=(size, size))
    return half @ half.T / size + np.eye(size), random.normal(size=size)


def main():
    """Run the program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--device", type=int, default=0)
    options = parser.parse_args()
    with cp.cuda.Device(options.device):
        stream = cp.cuda.Stream(non_blocking=True)
        matrix, vector = (cp.asarray(array) for array in system(options.size))
        cp.cuda.get_current_stream().synchronize()
        start, end = cp.cuda.Event(), cp.cuda.Event()
        with stream:
            start.record()
            solution, iterations = solve(matrix, vector)
            end.record()
        end.synchronize()
        milliseconds = cp.cuda.get_elapsed_time(start, end)
        with stream:
            error = float(cp.linalg.norm(matrix @ solution - vector))
        print(f"{iterations} iterations, residual below 1e-8: {error < 1e-8}, time above zero: {milliseconds > 0}")
        print(" ".join(f"{value:.9f}" for value in solution[:4].tolist()))


if __name__ == "__main__":
    main()
