"""``python -m tcuda.emulation``: the command ``tcuda run``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Run the program that ``arguments`` name, and return its exit status.

    Raises:
        SystemExit: The arguments name no program that can be run, or the environment asks for other devices.
    """
    import argparse

    from tcuda.emulation.as_cupy import command

    parser = argparse.ArgumentParser(prog="python -m tcuda.emulation")
    command.describe(parser)
    (_, *own), program = command.split(["run", *arguments])
    options = parser.parse_args(own)
    options.program = program
    return command.run(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
