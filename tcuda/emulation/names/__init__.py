"""The names of CuPy: which of them emulated devices have, why others are missing, and what objects call themselves."""
