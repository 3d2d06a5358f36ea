"""``python -m tcuda.emulation``: run a program that uses CuPy on emulated devices."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

_COMMAND = "python -m tcuda.emulation"
_USAGE = f"usage: {_COMMAND} (PROGRAM | -m MODULE) [ARGUMENT ...]"
_HELP = f"""{_USAGE}

Run a program as python does, with emulated devices in the place of GPUs: 'import cupy' imports tcuda's array
namespace, also where CuPy is installed. The exit status is that of the program.

  PROGRAM    the file, folder or archive to run
  -m MODULE  run a module instead, such as pytest

The environment describes the devices: TCUDA_EMULATED_DEVICES=2 TCUDA_EMULATED_MEMORY=512MiB."""
_BAD_USAGE = 2


def main(arguments: Sequence[str]) -> int:
    """Run the program that ``arguments`` name, and return its exit status.

    Raises:
        SystemExit: The arguments name no program that can be run, or the environment asks for other devices.
    """
    from tcuda._base.program import named_program
    from tcuda._runtime.emulated import settings
    from tcuda.emulation import _import_hook

    words = list(arguments)
    if words[:1] == ["--"]:
        del words[0]
    elif words[:1] in (["-h"], ["--help"]):
        print(_HELP)
        return 0
    if not words:
        _refuse("give the program to run, or -m and a module")
    if words[0].startswith("-") and not words[0].startswith("-m"):
        _refuse(f"unknown option {words[0]!r}")
    if os.environ.setdefault("TCUDA_RUNTIME", "emulated") != "emulated":
        _refuse(f"TCUDA_RUNTIME is {os.environ['TCUDA_RUNTIME']!r}; this command needs 'emulated', or no such variable")
    try:
        run = named_program(words)
        # The devices are made at their first use, because the program may still change CUDA_VISIBLE_DEVICES.
        settings.check(*settings.from_environment(os.environ))
        settings.parse_schedule(None, None, os.environ)
    except OSError as error:
        _refuse(f"{error.strerror}: {error.filename!r}")
    except ValueError as error:
        _refuse(str(error))
    _import_hook.install()
    return run().status


def _refuse(message: str) -> NoReturn:
    print(f"{_USAGE}\n{_COMMAND}: error: {message}", file=sys.stderr)
    raise SystemExit(_BAD_USAGE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
