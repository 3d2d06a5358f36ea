"""The folder that a process adds to ``PYTHONPATH``, so that ``import cupy`` in its children imports emulated devices.

A child imports the modules of this folder as top-level modules, not as modules of tcuda. So these modules import tcuda
only if the child uses emulated devices or a race detector.
"""
