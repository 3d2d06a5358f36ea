"""CuPy as the array library: its arrays take memory, streams and random numbers from tcuda."""
