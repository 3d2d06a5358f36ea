"""Work on the memory of devices: NumPy's functions as work of a stream, and the elements that the work touches."""
