"""Compilation of kernels with NVRTC, through CuPy's functions.

The parameters of a kernel are not known to the driver in full: ``cuFuncGetParamInfo`` tells sizes, and a size does not
tell a ``float`` from an ``int``. The declarations in PTX have no signs, and newer compilers declare all parameters as
plain bits. So the compiler has to tell: the text of ``kernel_parameters.cuh`` follows the source, and lets the compiler
write the numbers of each parameter into the name of an empty kernel.
"""

from __future__ import annotations

import functools
import importlib.resources
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cupy._core import core
from cupy_backends.cuda.libs import nvrtc

from tcuda._base import log
from tcuda.kernels._source import untemplated_kernels

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    Parameters: TypeAlias = list[tuple[str, int, int]]

_REPORT_FILE = "tcuda_kernel_parameters"
_NUMBER = re.compile(r"Li(\d+)E")


@dataclass(frozen=True)
class Entry:
    """A kernel of a compiled source: the name in the image, and the parameters as ``KernelParameters`` takes them."""

    symbol: str
    parameters: Parameters


@dataclass(frozen=True)
class Image:
    """A compiled source: a cubin or PTX, and the kernels by the names under which they were asked for."""

    code: bytes
    entries: dict[str, Entry]


def compiled(source: str, name: str, arch: str, options: Sequence[str]) -> Image:
    """Return the image of ``source`` with the kernel ``name``, and with all kernels that need no template arguments.

    Args:
        source: The source.
        name: The name of a kernel, or an expression such as ``"scale<float>"``.
        arch: The option for the architecture: ``-arch=sm_90`` makes a cubin, ``-arch=compute_90`` makes PTX.
        options: Options of NVRTC.

    Raises:
        RuntimeError: The source cannot be compiled, or has no kernel of that name.
    """
    others = [other for other in untemplated_kernels(source) if other != name]
    if others:
        try:
            return _compile(source, [name, *others], arch, options)
        except RuntimeError:
            pass  # One of the names may be wrong, such as the name of a kernel in #if 0. Other errors come again below.
    return _compile(source, [name], arch, options)


def architecture(capability: str, asked: str | None) -> str:
    """Return the option for the architecture, for a device of ``capability``, such as ``"90"``.

    NVRTC makes a cubin for the architecture of the device. If the program asked for another one, or NVRTC is older than
    the device, NVRTC makes PTX, which the driver compiles again.
    """
    if asked is not None:
        return f"-arch={'sm' if asked.rstrip('af') == capability else 'compute'}_{asked}"
    supported = [int(known) for known in nvrtc.getSupportedArchs()]
    if int(capability) in supported:
        return f"-arch=sm_{capability}"
    return f"-arch=compute_{max((known for known in supported if known < int(capability)), default=supported[0])}"


def _compile(source: str, names: Sequence[str], arch: str, options: Sequence[str]) -> Image:
    expressions = {
        name: f"tcuda_report::tcuda_parameters<tcuda_report::tcuda_of<decltype(+({name}))>::tcuda_type>"
        for name in names
    }
    text = f'{source}\n#line 1 "{_REPORT_FILE}"\n{_report()}'
    start = time.perf_counter()
    program = nvrtc.createProgram(text, f"{_file_of(names[0])}.cu", (), ())
    try:
        for name, expression in expressions.items():
            nvrtc.addNameExpression(program, name)
            nvrtc.addNameExpression(program, expression)
        nvrtc.compileProgram(program, (*core.assemble_cupy_compiler_options(tuple(options)), arch))
        entries = {
            name: Entry(nvrtc.getLoweredName(program, name), _parameters(nvrtc.getLoweredName(program, expression)))
            for name, expression in expressions.items()
        }
        code = nvrtc.getCUBIN(program) if arch.startswith("-arch=sm") else nvrtc.getPTX(program)
        log.debug("Kernels %s were compiled in %.0f ms.", ", ".join(names), 1000 * (time.perf_counter() - start))
        return Image(code, entries)
    except nvrtc.NVRTCError as error:
        messages = nvrtc.getProgramLog(program) or str(error)
        raise RuntimeError(f"Kernel compilation failed:\n{_explained(messages, names[0])}") from error
    finally:
        nvrtc.destroyProgram(program)


def _explained(log: str, name: str) -> str:
    """Return ``log`` without the errors that follow from others, and with a sentence about an unknown name."""
    entries = log.split("\n\n")
    own = [entry for entry in entries if "tcuda_report" not in entry and _REPORT_FILE not in entry]
    found = "\n\n".join(own).strip()
    if "__nv_name_map" in log:
        found += (
            f"\n\nIs {name!r} a kernel of the source? The name of a kernel in a namespace begins with the namespace."
        )
    return found.strip()


def _parameters(lowered: str) -> Parameters:
    numbers = [int(number) for number in _NUMBER.findall(lowered)]
    parameters = []
    end = 0
    for kind, size, alignment in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
        offset = -(-end // alignment) * alignment
        parameters.append((chr(kind), size, offset))
        end = offset + size
    return parameters


def _file_of(name: str) -> str:
    return re.sub(r"\W+", "_", name)


@functools.cache
def _report() -> str:
    return (importlib.resources.files("tcuda._cupy") / "kernel_parameters.cuh").read_text(encoding="utf-8")
