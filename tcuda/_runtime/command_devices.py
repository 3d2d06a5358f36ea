"""The devices on which a command runs a program: GPUs, or emulated devices."""

from __future__ import annotations

import argparse
import os

from tcuda._base.wings import wing_module
from tcuda._runtime import is_emulated

DEVICES = 2
"""The number of emulated devices, unless the user gives another number."""

_LONGEST_NUMBER = 15


def add_option(parser: argparse.ArgumentParser, default: str = "the default if there is no GPU") -> None:
    """Add the option ``--emulated`` to a command.

    Args:
        parser: The parser of the command.
        default: The devices of the command without the option, in words.
    """
    parser.add_argument(
        "--emulated",
        metavar="N",
        nargs="?",
        type=_count,
        const=DEVICES,
        help=f"run on N emulated devices, with '=' before N ({DEVICES}); {default}",
    )


def choose(emulated: int | None, otherwise: str = "auto") -> str | None:
    """Let the program run on emulated devices if the user asks for them, or by the choice of the command.

    The choice is stored in the environment: a program may still call ``tcuda.emulation.enable()``, which goes first.
    On emulated devices, ``import cupy`` in the program imports their arrays.

    Args:
        emulated: The number of emulated devices; None if the user has not asked for them.
        otherwise: The choice if the user has made none: ``"auto"`` for emulated devices where there is no GPU, or
            ``"emulated"``.

    Returns:
        A message for the user; None if the user or the command chose the devices.

    Raises:
        RuntimeError: CuPy has been imported already.
        ValueError: ``TCUDA_RUNTIME`` has a value that is not allowed.
    """
    told = None
    if emulated is None:
        if not is_emulated(otherwise):
            return None
        if otherwise == "auto" and os.environ.get("TCUDA_RUNTIME") != "emulated":
            emulated = DEVICES
            told = f"There is no GPU: using {emulated} emulated devices."
    if emulated is not None:
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)  # the variable hides GPUs, and the user asks for N devices
        os.environ.update(TCUDA_RUNTIME="emulated", TCUDA_EMULATED_DEVICES=str(emulated))
    wing_module("emulation").install_as_cupy()
    return told


def require_emulated(option: str) -> None:
    """Insist on emulated devices, which ``option`` of a command needs.

    Raises:
        RuntimeError: The devices are GPUs.
        ValueError: ``TCUDA_RUNTIME`` has a value that is not allowed.
    """
    if not is_emulated():
        raise RuntimeError(f"{option} needs emulated devices: add --emulated.")


def require_valid_variables() -> None:
    """Insist that the environment variables that count for the devices have values that are allowed.

    Raises:
        OSError: A file that a variable names cannot be read.
        ValueError: A variable has a value that is not allowed.
    """
    wing_module("emulation.as_cupy.variables").require_valid(emulated=is_emulated())


def _count(text: str) -> int:
    """Return the number of devices in ``text``."""
    settings = wing_module("emulation.runtime.settings")
    try:
        devices, memory = settings.from_environment({"TCUDA_EMULATED_DEVICES": text})
        settings.check(devices, memory)
    except ValueError:
        shown = text if len(text) <= _LONGEST_NUMBER else f"{text[:_LONGEST_NUMBER]}..."
        raise argparse.ArgumentTypeError(f"{shown!r} is not a number of devices that can be emulated") from None
    return int(devices)


__all__ = ["add_option", "choose", "require_emulated", "require_valid_variables"]
