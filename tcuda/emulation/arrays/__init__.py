"""The class of arrays, and the functions of the array namespace."""
