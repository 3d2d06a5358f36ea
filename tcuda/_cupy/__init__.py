"""CuPy as the array library: the arrays of CuPy use the memory, streams and random numbers of tcuda."""
