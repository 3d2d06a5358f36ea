"""The watch of CUDA devices: what a race detector learns of the calls of the driver, and of CuPy's kernels."""
