"""The command line: ``tcuda info``, ``tcuda demo``, ``tcuda memory-viz``, ``tcuda graph-viz``."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tcuda._version import __version__
from tcuda.cli import demo, graph_viz, info, memory_viz
from tcuda.cli.interrupt import interruptible

if TYPE_CHECKING:
    from collections.abc import Sequence

_FAILED = 1
_INTERRUPTED = 130  # 128 + SIGINT, as shells count


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that ``argv`` names.

    Args:
        argv: The arguments; those of the process if None.

    Returns:
        The exit code: 0, 1 if the command failed, 130 if it was interrupted. Bad usage exits with 2.
    """
    options = _parser().parse_args(argv)
    try:
        with interruptible():
            options.run(options)
    except KeyboardInterrupt:
        print("tcuda: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except (RuntimeError, ValueError) as error:
        print(f"tcuda {options.command}: {' '.join(str(error).split())}", file=sys.stderr)
        return _FAILED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tcuda", description="The surface of torch.cuda for CuPy arrays.")
    parser.add_argument("--version", action="version", version=f"tcuda {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for command in (info, demo, memory_viz, graph_viz):
        command.add_to(commands)
    return parser


__all__ = ["main"]
