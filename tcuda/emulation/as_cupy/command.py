"""``tcuda run`` and ``python -m tcuda.emulation``: run a program that says ``import cupy`` on emulated devices."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tcuda._base.messages import in_one_line
from tcuda._base.program import add_program, named_program, split_program
from tcuda._runtime import command_devices, is_emulated
from tcuda.emulation.as_cupy.variables import require_valid

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

_NAME = "run"
_DESCRIPTION = (
    "Run a program as python does, with emulated devices in the place of GPUs: 'import cupy' imports tcuda's array "
    "namespace, also where CuPy is installed. The same holds in the processes that the program starts. The exit status "
    "is that of the program."
)
_EPILOG = (
    "The options of the command come before the program. All later arguments are the program's. The environment "
    "describes the devices: TCUDA_EMULATED_DEVICES=2 TCUDA_EMULATED_MEMORY=512MiB, and the checks of kernels: "
    "TCUDA_EMULATED_CHECKS=memory,races. With TCUDA_RUNTIME=auto, a machine with a GPU runs the program on the GPU, "
    "with the installed CuPy."
)


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    describe(commands.add_parser(_NAME, help="run a program that says 'import cupy' on emulated devices"))


def describe(parser: argparse.ArgumentParser) -> None:
    """Give ``parser`` the options of the command, and what its help says."""
    parser.usage = "%(prog)s [options] (PROGRAM | -m MODULE | -c CODE | -) [ARGUMENT ...]"
    parser.description, parser.epilog, parser.allow_abbrev = _DESCRIPTION, _EPILOG, False
    add_program(parser)
    command_devices.add_option(parser, default="the number in TCUDA_EMULATED_DEVICES, or else 1")
    parser.set_defaults(run=run, usage_error=parser.error)


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of the command, and the program with its arguments; for other commands no program."""
    return split_program(arguments, _NAME, ())


def run(options: argparse.Namespace) -> int:
    """Run the command, and return the exit status of the program."""
    if not options.program:
        options.usage_error("give the program to run, or -m and a module, or -c and code")
    try:
        asked = "emulated" if options.emulated is not None or is_emulated("emulated") else os.environ["TCUDA_RUNTIME"]
        if asked == "cuda":
            raise ValueError("TCUDA_RUNTIME is 'cuda'; this command needs 'emulated' or 'auto', or no such variable")
        start = named_program(options.program)
        # The devices are made at their first use, because the program may still change CUDA_VISIBLE_DEVICES.
        require_valid(emulated=True)
        command_devices.choose(options.emulated, otherwise="emulated")
    except (OSError, RuntimeError, ValueError) as error:
        options.usage_error(in_one_line(error))
    return start().status


__all__ = ["add_to", "describe", "run", "split"]
