"""The CUDA runtime, through CuPy."""

from tcuda._runtime.cuda.runtime import CudaRuntime

__all__ = ["CudaRuntime"]
