"""Values that several modules of the command line share."""

STDOUT = "-"
"""The name that stands for stdout in place of a file."""

DEVICES = 2
"""The number of emulated devices of ``tcuda sanitize``, unless the user gives another number."""

__all__ = ["DEVICES", "STDOUT"]
