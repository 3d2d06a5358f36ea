"""Functions and classes of ``cupyx.scipy`` that SciPy does not have, or has with another meaning than CuPy."""
