"""``python -m tcuda.emulation``: run a program that uses CuPy on emulated devices."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

_COMMAND = "python -m tcuda.emulation"
_USAGE = f"usage: {_COMMAND} (PROGRAM | -m MODULE | -c CODE | -) [ARGUMENT ...]"
_HELP = f"""{_USAGE}

Run a program as python does, with emulated devices in the place of GPUs: 'import cupy' imports tcuda's array
namespace, also where CuPy is installed. The same holds in the processes that the program starts. The exit status is
that of the program.

  PROGRAM    the file, folder or archive to run
  -m MODULE  run a module instead, such as pytest
  -c CODE    run code instead
  -          run the code on the standard input instead

The environment describes the devices: TCUDA_EMULATED_DEVICES=2 TCUDA_EMULATED_MEMORY=512MiB, and the checks of kernels:
TCUDA_EMULATED_CHECKS=memory,races. With TCUDA_RUNTIME=auto, a machine with a GPU runs the program on the GPU, with the
installed CuPy."""
_BAD_USAGE = 2


def main(arguments: Sequence[str]) -> int:
    """Run the program that ``arguments`` name, and return its exit status.

    Raises:
        SystemExit: The arguments name no program that can be run, or the environment asks for other devices.
    """
    from tcuda._base.program import named_program
    from tcuda._runtime import is_emulated
    from tcuda.emulation import install_as_cupy
    from tcuda.emulation.as_cupy.variables import require_valid

    words = list(arguments)
    if words[:1] == ["--"]:
        del words[0]
    elif words[:1] in (["-h"], ["--help"]):
        print(_HELP)
        return 0
    if not words:
        _refuse("give the program to run, or -m and a module, or -c and code")
    if words[0].startswith("-") and words[0] != "-" and words[0][:2] not in ("-c", "-m"):
        _refuse(f"unknown option {words[0]!r}")
    try:
        if not is_emulated("emulated") and os.environ["TCUDA_RUNTIME"] != "auto":
            _refuse("TCUDA_RUNTIME is 'cuda'; this command needs 'emulated' or 'auto', or no such variable")
        run = named_program(words)
        # The devices are made at their first use, because the program may still change CUDA_VISIBLE_DEVICES.
        require_valid(emulated=True)
    except OSError as error:
        _refuse(f"{error.strerror}: {error.filename!r}")
    except ValueError as error:
        _refuse(str(error))
    install_as_cupy()
    return run().status


def _refuse(message: str) -> NoReturn:
    print(f"{_USAGE}\n{_COMMAND}: error: {message}", file=sys.stderr)
    raise SystemExit(_BAD_USAGE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
