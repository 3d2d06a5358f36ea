"""The options of NVRTC and nvcc, and the options of the C++ compiler that have the same effect."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LEAST_STANDARD = 17
"""The oldest C++ standard, because the headers of the device language need C++17."""

_STANDARDS = {"c++03": 3, "c++11": 11, "c++14": 14, "c++17": 17, "c++20": 20, "c++23": 23}

_LONG = {
    "-D": "--define-macro",
    "-G": "--device-debug",
    "-I": "--include-path",
    "-Ofc": "--fast-compile",
    "-U": "--undefine-macro",
    "-Xptxas": "--ptxas-options",
    "-arch": "--gpu-architecture",
    "-brief-diag": "--brief-diagnostics",
    "-default-device": "--device-as-default-execution-space",
    "-dc": "--device-c",
    "-dlto": "--dlink-time-opt",
    "-dopt": "--dopt",
    "-dw": "--device-w",
    "-err-no": "--display-error-number",
    "-ewp": "--extensible-whole-program",
    "-fmad": "--fmad",
    "-ftz": "--ftz",
    "-include": "--pre-include",
    "-jtd": "--jump-table-density",
    "-lineinfo": "--generate-line-info",
    "-maxrregcount": "--maxrregcount",
    "-minimal": "--minimal",
    "-no-err-no": "--no-display-error-number",
    "-opt-info": "--optimization-info",
    "-prec-div": "--prec-div",
    "-prec-sqrt": "--prec-sqrt",
    "-rdc": "--relocatable-device-code",
    "-restrict": "--restrict",
    "-std": "--std",
    "-time": "--time",
    "-use_fast_math": "--use_fast_math",
    "-w": "--disable-warnings",
    # nvcc only
    "-O": "--optimize",
    "-Xcompiler": "--compiler-options",
    "-ccbin": "--compiler-bindir",
    "-code": "--gpu-code",
    "-expt-relaxed-constexpr": "--expt-relaxed-constexpr",
    "-extended-lambda": "--extended-lambda",
    "-g": "--debug",
    "-gencode": "--generate-code",
    "-keep": "--keep",
    "-m": "--machine",
    "-res-usage": "--resource-usage",
    "-v": "--verbose",
}
_GLUED = ("-D", "-U", "-I")
_GLUED_NVCC = ("-O", "-m")

_SWITCHES = frozenset(
    [
        "--brief-diagnostics=true",
        "--create-pch",
        "--device-as-default-execution-space",
        "--device-c",
        "--device-debug",
        "--device-float128",
        "--device-int128",
        "--device-w",
        "--disable-warnings",
        "--display-error-number",
        "--dlink-time-opt",
        "--extensible-whole-program",
        "--extra-device-vectorization",
        "--fdevice-syntax-only",
        "--fdevice-time-trace",
        "--gen-opt-lto",
        "--generate-line-info",
        "--minimal",
        "--modify-stack-limit",
        "--no-cache",
        "--no-display-error-number",
        "--no-source-include",
        "--pch",
        "--restrict",
        "--use_fast_math",
    ]
)
_SWITCHES_NVCC = frozenset(
    [
        "--debug",
        "--expt-extended-lambda",
        "--expt-relaxed-constexpr",
        "--extended-lambda",
        "--keep",
        "--resource-usage",
        "--verbose",
    ]
)
_TRUTHS = frozenset(
    [
        "--brief-diagnostics",
        "--builtin-initializer-list",
        "--builtin-move-forward",
        "--device-stack-protector",
        "--fmad",
        "--ftz",
        "--modify-stack-limit",
        "--pch-messages",
        "--pch-verbose",
        "--prec-div",
        "--prec-sqrt",
        "--relocatable-device-code",
    ]
)
_VALUES = frozenset(
    [
        "--define-macro",
        "--diag-error",
        "--diag-suppress",
        "--diag-warn",
        "--dopt",
        "--fast-compile",
        "--gpu-architecture",
        "--include-path",
        "--jump-table-density",
        "--maxrregcount",
        "--optimization-info",
        "--pch-dir",
        "--pre-include",
        "--ptxas-options",
        "--split-compile",
        "--std",
        "--time",
        "--undefine-macro",
        "--use-pch",
        "--version-ident",
    ]
)
_VALUES_NVCC = frozenset(
    [
        "--compiler-bindir",
        "--compiler-options",
        "--generate-code",
        "--gpu-code",
        "--machine",
        "--optimize",
        "--threads",
    ]
)


class InvalidOption(ValueError):
    """The error of an option that NVRTC does not know, or of a value that NVRTC does not take."""


@dataclass
class Options:
    """The options of the C++ compiler.

    Attributes:
        standard: The C++ standard, such as 17.
        flags: The other options, in the order of the caller.
        include: The caller's folders of headers.
        debug: Whether the code is compiled for a debugger.
        quiet: Whether warnings are left out.
    """

    standard: int = _LEAST_STANDARD
    flags: list[str] = field(default_factory=list)
    include: list[Path] = field(default_factory=list)
    debug: bool = False
    quiet: bool = False

    def arguments(self) -> list[str]:
        """Return the arguments of the command."""
        quiet = ["-w"] if self.quiet else []
        return [*self.language(), *self.flags, *quiet, *(f"-I{folder}" for folder in self.include)]

    def language(self) -> list[str]:
        """Return the arguments that a precompiled header must share with the sources that include the header."""
        return [f"-std=c++{self.standard}", *(["-O0", "-g"] if self.debug else ["-O2"])]


def translate(options: Sequence[str], backend: str = "nvrtc") -> Options:
    """Return the options of the C++ compiler for the options of NVRTC, or of nvcc.

    Options about the code of a GPU, such as ``-arch`` and ``--fmad``, have no effect.

    Raises:
        InvalidOption: NVRTC does not know an option, or does not take the value of an option.
    """
    translated = Options()
    for name, value in _parsed(options, backend):
        if name == "--std":
            translated.standard = max(_LEAST_STANDARD, _STANDARDS[value])
        elif name == "--define-macro":
            translated.flags.append(f"-D{value}")
        elif name == "--undefine-macro":
            translated.flags.append(f"-U{value}")
        elif name == "--pre-include":
            translated.flags += ["-include", value]
        elif name == "--include-path":
            # The compiler runs in a folder of its own.
            translated.include += [Path(value).expanduser().absolute()]
        elif name == "--use_fast_math":
            translated.flags.append("-D__USE_FAST_MATH__=1")
        elif name == "--device-debug":
            translated.debug = True
        elif name == "--disable-warnings":
            translated.quiet = True
    return translated


def _parsed(options: Sequence[str], backend: str) -> Iterator[tuple[str, str]]:
    """Yield the long name and the value of each option."""
    nvcc = backend == "nvcc"
    switches = _SWITCHES | _SWITCHES_NVCC if nvcc else _SWITCHES
    values = _VALUES | _VALUES_NVCC if nvcc else _VALUES
    rest = iter(options)
    for option in rest:
        name, equals, value = option.partition("=")
        for glued in (*_GLUED, *(_GLUED_NVCC if nvcc else ())):
            # The value of an option such as -D follows without a space, and may contain "=".
            if option.startswith(glued) and len(option) > len(glued) and _LONG.get(name) is None:
                name, equals, value = glued, "=", option[len(glued) :]
        name = _LONG.get(name, name)
        if name in _TRUTHS:
            truth = value if equals else "true"
            if truth not in ("true", "false"):
                raise _invalid(backend, name, value)
            yield name, truth
        elif name in switches and not equals:
            yield name, ""
        elif name in values:
            if not equals:
                value = next(rest, "") if name not in ("--dopt", "--time") or nvcc else "on"
            _check(backend, name, value.strip())
            yield name, value.strip()
        else:
            raise InvalidOption(f"{backend}: error: unrecognized option {option}")


def _check(backend: str, name: str, value: str) -> None:
    known = {
        "--std": "|".join(map(re.escape, _STANDARDS)),
        "--gpu-architecture": r"(compute|sm|lto)_\d+[af]?|native|all|all-major",
        "--maxrregcount": r"\d+",
        "--dopt": "on|off",
    }
    if not value or re.fullmatch(known.get(name, ".*"), value, re.DOTALL) is None:
        raise _invalid(backend, name, value)


def _invalid(backend: str, name: str, value: str) -> InvalidOption:
    short = next((short for short, long in _LONG.items() if long == name), "")
    shown = f"{name} ({short})" if short else name
    return InvalidOption(f"{backend}: error: invalid value for {shown}: {value!r}")
