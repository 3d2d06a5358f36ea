"""The name ``cupy`` in a child of a process in which ``import cupy`` imports emulated devices."""

from _tcuda_as_cupy import take_place

take_place(__name__)
