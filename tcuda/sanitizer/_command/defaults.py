"""Values that several modules of the command line share."""

STDOUT = "-"
"""The name that stands for stdout in place of a file."""

__all__ = ["STDOUT"]
