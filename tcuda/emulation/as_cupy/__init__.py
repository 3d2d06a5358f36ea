"""What ``import cupy`` needs beside the array namespace: the import, CuPy's private modules, its helpers for tests."""
