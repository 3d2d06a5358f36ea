"""Devices, their errors, their memory, and the arrays as views of this memory."""
