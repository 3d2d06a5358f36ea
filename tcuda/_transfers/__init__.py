"""The parts of work on several devices that both array libraries and :mod:`tcuda.comm` use."""
