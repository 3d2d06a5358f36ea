"""Finance: prices of options, by the formula of Black and Scholes, and by a Monte Carlo simulation in one kernel.

python option_prices.py [--options 1000] [--paths 100000]
"""

import argparse

import cupy as cp
import numpy as np

black_scholes = cp.ElementwiseKernel(
    "T price, T strike, T years, T rate, T volatility",
    "T call, T put",
    """
    const T spread = volatility * sqrt(years);
    const T first = (log(price / strike) + (rate + volatility * volatility / 2) * years) / spread;
    const T second = first - spread;
    const T discounted = strike * exp(-rate * years);
    call = price * normal_cdf(first) - discounted * normal_cdf(second);
    put = discounted * normal_cdf(-second) - price * normal_cdf(-first);
    """,
    "black_scholes",
    preamble="""
    template <typename T> __device__ T normal_cdf(T x) { return erfc(-x * T(0.70710678118654752440)) / 2; }
    """,
)

simulate = cp.RawKernel(
    r"""
    // A number in (0, 1) from a seed and a counter (the finaliser of MurmurHash3).
    __device__ double uniform(unsigned int seed, unsigned int counter) {
        unsigned int x = counter * 2654435761u ^ seed;
        x ^= x >> 16; x *= 2246822507u; x ^= x >> 13; x *= 3266489909u; x ^= x >> 16;
        return (x + 0.5) / 4294967296.0;
    }

    extern "C" __global__ void simulate(
        double price, double strike, double years, double rate, double volatility, unsigned int seed, int paths,
        double* payoffs
    ) {
        for (int path = blockDim.x * blockIdx.x + threadIdx.x; path < paths; path += gridDim.x * blockDim.x) {
            const double radius = sqrt(-2 * log(uniform(seed, 2 * path)));
            const double normal = radius * cos(6.283185307179586 * uniform(seed, 2 * path + 1));
            const double drift = (rate - volatility * volatility / 2) * years;
            const double end = price * exp(drift + volatility * sqrt(years) * normal);
            payoffs[path] = fmax(end - strike, 0.0);
        }
    }
    """,
    "simulate",
)


def monte_carlo(price, strike, years, rate, volatility, paths, seed=1):
    """Return the price of a call by a simulation of the price at the end."""
    payoffs = cp.empty(paths)
    arguments = [np.float64(value) for value in (price, strike, years, rate, volatility)]
    simulate((64,), (128,), (*arguments, np.uint32(seed), np.int32(paths), payoffs))
    return float(payoffs.mean()) * np.exp(-rate * years)


def market(count):
    """Return random prices, strikes and years, in arrays of NumPy."""
    random = np.random.default_rng(0)
    return random.uniform(5, 30, count), random.uniform(1, 100, count), random.uniform(0.25, 10, count)


def main():
    """Run the program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--options", type=int, default=1000)
    parser.add_argument("--paths", type=int, default=100000)
    options = parser.parse_args()
    rate, volatility = 0.02, 0.3
    prices, strikes, years = (cp.asarray(array) for array in market(options.options))
    calls, puts = black_scholes(prices, strikes, years, rate, volatility)
    print(f"mean call {float(calls.mean()):.9f}, mean put {float(puts.mean()):.9f}")
    simulated = monte_carlo(20.0, 22.0, 2.0, rate, volatility, options.paths)
    print(f"simulated call {simulated:.9f}")


if __name__ == "__main__":
    main()
