"""The build of the shared library of a source, and the search for the library in the cache."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tcuda._base import log
from tcuda._base.terminal import working
from tcuda._base.version import __version__
from tcuda.emulation.rtc import (
    checks,
    compiler,
    conversions,
    headers,
    launch_bounds,
    linked_libraries,
    missing_headers,
    operators,
    own_headers,
    precompiled,
    source,
    support,
    unsupported,
)
from tcuda.emulation.rtc.cache import cache, key_of
from tcuda.emulation.rtc.errors import CompileException, ordered
from tcuda.emulation.rtc.options import InvalidOption, Options, translate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcuda.emulation.rtc.compiler import Compiler

FILE = "kernel.cu"
"""The name of the source in messages."""

_EXPRESSIONS = "name_expressions"
"""The name, in messages, of the lines that the build adds for the name expressions."""

VARIABLE = "tcuda_expression_"
"""The symbol of the variable of a name expression, before the number of the expression."""

ELEMENTS = "tcuda_elements_"
"""The symbol of the elements to which the parameters of a kernel point, before the number of the kernel."""

_FLAGS = (
    "-fPIC",
    "-shared",
    "-pthread",
    "-fno-exceptions",
    "-fno-threadsafe-statics",
    "-fvisibility=default",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fsigned-char",  # A char of CUDA has a sign on every host.
    "-ffp-contract=off",  # Else products and sums would have other bits on processors that always have an FMA.
    "-Wl,-z,now",  # A kernel must not write the addresses of the functions that the module calls.
    "-Wl,-Bsymbolic",  # A module uses its own functions and variables, also where another module has the same names.
    "-fno-semantic-interposition",  # So the compiler may put functions of the module into their callers.
    "-Wno-attributes",
    "-fstack-clash-protection",
)
# A thread has 512 KiB of local memory, as on a GPU. With this limit of a frame, a thread that uses more in nested calls
# meets an unmapped page, even if the thread touches only the far end of an array.
_FRAME = "frame-larger-than=524288"
_GCC = (
    f"-Werror={_FRAME}",
    "-fdiagnostics-color=never",
    # Without this flag, all loaded modules would share the variables of templates and inline functions.
    "-fno-gnu-unique",
    linked_libraries.WITHOUT,
)
_CLANG = (
    f"-W{_FRAME}",
    "-Werror=frame-larger-than",
    "-fno-color-diagnostics",
    "-fno-delete-null-pointer-checks",  # Else clang leaves out a write to the address 0, which no check would see.
    "-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset",  # The headers check these calls, which copy objects too.
)
_WITH_HOST_HEADERS = ("-DTCUDA_HOST_HEADERS=1",)
_WITHOUT_HOST_HEADERS = ("-nostdinc", "-nostdinc++")
_ERROR = re.compile(r"^([^:\s]+):\d+(?::\d+)?: (?:fatal )?error:", re.MULTILINE)
_NAME = re.compile(r"\b__global__\b[^();{]*?\b(\w+)\s*\(")
_IN_SOURCE = re.compile(rf":\d+(?::\d+)?: (?:fatal )?error:|^{FILE}: error:", re.MULTILINE)
_PASSING = tuple(
    os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EIO)
)
"""The errors of the system after which the compiler may accept the same source later."""

_SHORT = {
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT),
        "The folder {} has no room for the files of the compiler. Make room there, or let TMPDIR name another folder.",
    ),
    errno.ENOMEM: "The compiler got no memory. End other programs, or raise the limit of the process (ulimit -v).",
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "Close files, or raise the limit of open files (ulimit -n)."),
}
"""What to do about errors of the system for which the source is not to blame."""

_refused: dict[str, str] = {}
"""The messages of the compiler about each source that it has refused in this process, by the key of the library."""

PATIENCE = 2.0
"""The seconds of compiles in a process before a terminal is told."""
_compiles, _seconds = 0, 0.0
"""The compiles of this process. Threads that compile at the same time may lose a few: the numbers are for a reader."""

_OWN = ("tcuda/elements.h", "tcuda/launch.h")
"""The headers whose templates the added lines use."""
_KEPT = ("__global__", "__shared__", "__launch_bounds__")
"""The macros of the headers that must stay visible when the preprocessor decides which kernels a source has."""


@dataclass(frozen=True)
class Request:
    """A source and the settings with which the source is compiled.

    Attributes:
        code: The source.
        options: The options of NVRTC or nvcc.
        names: The name expressions that the library must have.
        backend: The compiler that CuPy would use, ``"nvrtc"`` or ``"nvcc"``.
        jitify: Whether CuPy would use Jitify, which gives NVRTC headers of the standard library.
        recorded: Whether launches can note every access of the kernels.
        races: Whether launches can find races in the kernels.
    """

    code: str
    options: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    backend: str = "nvrtc"
    jitify: bool = False
    recorded: bool = False
    races: bool = False

    @property
    def has_host_headers(self) -> bool:
        """Whether the source can include the headers of the host."""
        return self.backend == "nvcc" or self.jitify

    def failure(self, message: str) -> CompileException:
        """Return the error with ``message``."""
        return CompileException(message, self.code, FILE, self.options, self.backend)


def build(
    code: str,
    options: Sequence[str] = (),
    names: Sequence[str] = (),
    backend: str = "nvrtc",
    *,
    jitify: bool = False,
    recorded: bool = False,
    races: bool = False,
    memory: bool | None = None,
) -> tuple[bytes, str]:
    """Return the shared library of ``code``, and the messages of the compiler.

    The messages are empty if the library was in the cache. A source that the compiler has refused is refused again
    without the compiler.

    Args:
        code: The source.
        options: The options of NVRTC or nvcc.
        names: The name expressions that the library must have.
        backend: The compiler that CuPy would use, ``"nvrtc"`` or ``"nvcc"``.
        jitify: Whether CuPy would use Jitify, which gives NVRTC headers of the standard library.
        recorded: Whether launches can note every access of the kernels. Such kernels are slower.
        races: Whether launches can find races in the kernels. Such kernels are slower still.
        memory: Whether accesses to memory are checked, as the user has chosen if None. Such a library has the lines of
            the source (:mod:`tcuda.emulation.rtc.source_lines`).

    Raises:
        CompileException: The source has an error or an unsupported construct, or an option is wrong.
        RuntimeError: The machine has no C++ compiler.
    """
    request = Request(code, tuple(options), tuple(names), backend, jitify, recorded, races)
    try:
        translated = translate(request.options, backend)
    except InvalidOption as error:
        raise request.failure(str(error)) from None
    used = compiler.find()
    checked = checks.chosen().memory if memory is None else memory
    key = _key(request, used, checked)
    # Headers of the caller may change at any time, so only the compiler knows whether a library is up to date.
    stable = not translated.include and "-include" not in translated.flags and '#include "' not in code
    stored = cache()
    found = stored.find(key) if stable else None
    if found is not None:
        log.debug("Kernels %s were compiled before: %d bytes in the cache.", _shown(request), len(found))
        return found, ""
    if stable and key in _refused:
        raise request.failure(_refused[key])
    start = time.perf_counter()
    with _long_work(_shown(request)), tempfile.TemporaryDirectory(prefix="tcuda-compile-") as folder:
        try:
            library, messages = _compiled(request, translated, used, checked, Path(folder))
        except CompileException as error:
            if _IN_SOURCE.search(str(error)) and not any(text in str(error) for text in _PASSING):
                _refused[key] = str(error)
            raise _shortage(str(error), folder) or error from None
        except OSError as error:
            raise _shortage(str(error), folder) or error from None
    log.debug(
        "Kernels %s were compiled in %.0f ms by %s.",
        _shown(request),
        1000 * (time.perf_counter() - start),
        used.version,
    )
    if stable:
        stored.store(key, library)
    return library, messages


def _shortage(message: str, folder: str) -> OSError | None:
    """Return the error that says what the compiler lacked, if the source is not to blame; None otherwise.

    Args:
        message: The message of the compiler, or of an error of this process.
        folder: The folder of the compile.
    """
    for number, advice in _SHORT.items():
        if os.strerror(number) in message:
            place = os.path.dirname(folder)  # noqa: PTH120  # a text for a message
            return OSError(number, f"{os.strerror(number)} while a kernel was compiled. {advice.format(place)}")
    return None


@contextlib.contextmanager
def _long_work(kernels: str) -> Iterator[None]:
    """Say on a terminal what is compiled, once compiles have taken seconds in this process."""
    global _compiles, _seconds
    start = time.perf_counter()
    with contextlib.ExitStack() as shown:
        if _seconds > PATIENCE:
            shown.enter_context(working(f"compiling {kernels} (compile {_compiles + 1}, {_seconds:.0f} s so far)"))
        yield
    _compiles += 1
    _seconds += time.perf_counter() - start


def _shown(request: Request) -> str:
    """Return the names of the kernels of a request, as far as the source tells them."""
    return ", ".join(request.names) or ", ".join(_NAME.findall(request.code)) or "without a name"


def _key(request: Request, used: Compiler, checked: bool) -> str:
    return key_of(
        __version__,
        headers.digest(),
        used.identity,
        str(checked),
        *_FLAGS,
        # The flags for both, because the question which compiler this is would start the compiler.
        *_GCC,
        *_CLANG,
        *checks.OF_OPERATORS,
        *checks.flags(request.code, memory=checked, clang=False, recorded=request.recorded, races=request.races),
        *checks.flags(request.code, memory=checked, clang=True, recorded=request.recorded, races=request.races),
        request.backend,
        str(request.jitify),
        request.code,
        *request.options,
        "names",
        *request.names,
    )


def _compiled(request: Request, translated: Options, used: Compiler, checked: bool, folder: Path) -> tuple[bytes, str]:
    """Return the shared library and the messages of the compiler.

    Raises:
        CompileException: The compiler refuses the source, or the source has an unsupported construct.
    """
    own = [*(_CLANG if used.is_clang else _GCC)]
    own += [*_WITH_HOST_HEADERS, f"-I{headers.host_folder()}"] if request.has_host_headers else _WITHOUT_HOST_HEADERS
    own += [f"-I{headers.folder()}"]
    language = headers.language(request.code)
    common = [*own, "-include", language, *translated.arguments()]
    expanded = _expanded(request, common, used, folder)
    compiled = request.code if expanded is None else expanded
    _require_supported(request, translated, compiled)
    common = [*own_headers.placed(request.code, translated.include, folder), *common]
    path = folder / FILE
    listed = source.kernels(compiled)
    prepared, registered = source.prepared(request.code), _registrations(listed, request.names)
    text = operators.rewritten(prepared)
    path.write_text(text + registered, "utf-8", "surrogatepass")
    library = folder / "kernel.so"
    added = checks.flags(compiled, memory=checked, clang=used.is_clang, recorded=request.recorded, races=request.races)
    flags = [*_FLAGS, *added]
    apart, objects = support.linked(used, [*own, *flags], folder)
    descriptors = precompiled.place(used, language, [*own, *translated.language(), *flags, *apart], folder)
    libraries = linked_libraries.arguments(used, folder, whole=request.has_host_headers)
    rest = [*apart, "-o", str(library), "-x", "c++", FILE, *objects, *libraries]
    done = used.run([*common, *flags, conversions.FLAG, *rest], folder, descriptors)
    if not done.returncode and conversions.are_in(done.stderr, [str(headers.folder()), "tcuda/"]):
        path.write_text(conversions.without_names(text + registered), "utf-8", "surrogatepass")
        places = conversions.PLACES_OF_CLANG if used.is_clang else conversions.PLACES_OF_GCC
        asking = [*flags, *apart, conversions.FLAG, *places, "-fsyntax-only"]
        told = used.run([*common, *asking, "-x", "c++", FILE], folder, descriptors)
        text = conversions.rewritten(text, told.stderr, FILE)
        path.write_text(text + registered, "utf-8", "surrogatepass")
        done = used.run([*common, *flags, *rest], folder, descriptors)
    if done.returncode and (text != prepared or conversions.FLAG in done.stderr):
        # The source has an error, or uses an operator in a way that its tokens do not tell. The messages quote the
        # source as it is.
        path.write_text(prepared + registered, "utf-8", "surrogatepass")
        checking = checks.OF_OPERATORS if checked else ()
        done = used.run([*common, *flags, *checking, *rest], folder, descriptors)
    messages = _messages(conversions.without_warnings(done.stderr))
    if done.returncode and _EXPRESSIONS in messages:
        # If a brace of the source is missing, the compiler complains about the added lines. So the messages are those
        # about the source alone.
        path.write_text(prepared, "utf-8", "surrogatepass")
        alone = used.run([*common, "-fsyntax-only", "-x", "c++", FILE], folder)
        messages = _messages(alone.stderr) if alone.returncode else messages
    numbers = {int(number) for number in re.findall(rf"{_EXPRESSIONS}:(\d+):", messages)}
    plain = [kernel.name for kernel in listed if not kernel.template and kernel.listed not in request.names]
    failed = [name for number, name in enumerate(plain, 1) if number in numbers and "overloaded function" in messages]
    taken = [name for name in failed if name in headers.functions()]
    if done.returncode and taken:
        raise request.failure(
            f"{FILE}: error: the kernel {taken[0]!r} has the name of a function of CUDA C++, which NVRTC refuses for "
            "functions such as norm() and max(). Give the kernel another name."
        )
    wrong = [
        (number, name) for number, name in enumerate(dict.fromkeys(request.names), len(plain) + 1) if number in numbers
    ]
    if done.returncode and wrong and set(_ERROR.findall(messages)) <= {_EXPRESSIONS, *_OWN}:
        raise request.failure(_about_name(*wrong[0], listed))
    if done.returncode:
        raise request.failure(messages or f"The C++ compiler ended with status {done.returncode}.")
    return library.read_bytes(), messages


def _about_name(number: int, name: str, listed: Sequence[source.Kernel]) -> str:
    kernels = ", ".join(kernel.name for kernel in listed) or "none"
    return (
        f"{_EXPRESSIONS}:{number}: error: {name!r} is not the name of a kernel or a global variable of the source. The "
        f"kernels of the source are: {kernels}. The name of a kernel in a namespace begins with the namespace. The "
        "name of a template has arguments, such as scale<float>. Overloaded kernels have no name."
    )


def _messages(text: str) -> str:
    shown = ordered(text, [FILE, _EXPRESSIONS])
    for folder in (headers.folder(), headers.host_folder()):
        shown = shown.replace(f"{folder}/", "")
    return missing_headers.explained(shown)


def _expanded(request: Request, common: Sequence[str], used: Compiler, folder: Path) -> str | None:
    """Return the source after the preprocessor, without the headers; None if nothing depends on the preprocessor."""
    doubtful = any(not finding.certain for finding in unsupported.findings(request.code, lambda header: False))
    if not doubtful and not source.depends_on_preprocessor(request.code):
        return None
    visible = "".join(f"#undef {name}\n" for name in _KEPT) + f'#line 1 "{FILE}"\n'
    (folder / FILE).write_text(request.code, "utf-8", "surrogatepass")  # The messages quote this file.
    path = folder / f"expanded_{FILE}"
    path.write_text(visible + request.code, "utf-8", "surrogatepass")
    done = used.run([*common, "-E", "-x", "c++", path.name], folder)
    if done.returncode:
        raise request.failure(_messages(done.stderr))
    return _own_lines(done.stdout, headers.package())


def _own_lines(expanded: str, own: Path) -> str:
    """Return the lines of the caller's files, each line of the source in its own place.

    The lines of included files follow after all lines of the source.
    """
    lines: dict[int, str] = {}
    others: list[str] = []
    file, number = "", 1
    for text in expanded.split("\n"):
        if text.startswith("# "):
            parts = text.split('"')
            if len(parts) >= 3 and parts[0][2:].strip().isdecimal():
                file, number = parts[1], int(parts[0][2:])
                flags = parts[2].split()
                file = "" if "3" in flags else file  # a header of the system
            continue
        if file == FILE:
            lines[number] = lines.get(number, "") + text
        elif file and not file.startswith((str(own), "<", "expanded_")):
            others.append(text)
        number += 1
    last = max(lines, default=0)
    return "\n".join([*(lines.get(number, "") for number in range(1, last + 1)), *others])


def _require_supported(request: Request, translated: Options, code: str) -> None:
    """Raise an error if the source has constructs that emulated devices do not have.

    Raises:
        CompileException: The source has such a construct.
    """

    def exists(header: str) -> bool:
        return any((folder / header).is_file() for folder in (headers.folder(), *translated.include))

    found = [finding for finding in unsupported.findings(request.code, exists) if finding.certain]
    if code is not request.code:
        found += unsupported.findings(code, exists)
    lines = sorted({(finding.line, finding.message(FILE)) for finding in found})
    if lines:
        raise request.failure("\n".join(message for _, message in lines))


def _registrations(kernels: Sequence[source.Kernel], names: Sequence[str]) -> str:
    """Return the lines that enter the kernels in the list of the module."""
    asked = dict.fromkeys(names)
    lines = [
        _registration(number, kernel.listed, kernel.name)
        for number, kernel in enumerate(
            kernel for kernel in kernels if not kernel.template and kernel.listed not in asked
        )
    ]
    for number, name in enumerate(asked):
        expression = name.strip().removeprefix("&")
        line = _registration(len(lines), launch_bounds.escaped(name), expression)
        lines.append(f"{line} TCUDA_EXPRESSION({VARIABLE}{number}, {expression})")
    bounds = launch_bounds.definition([(kernel.name, kernel.listed, kernel.threads) for kernel in kernels], asked)
    return "".join([f'\n#line 1 "{_EXPRESSIONS}"\n', *(f"{line}\n" for line in lines), bounds])


def _registration(number: int, name: str, function: str) -> str:
    return f'TCUDA_KERNEL("{name}", {function}) TCUDA_ELEMENTS({ELEMENTS}{number}, "{name}", {function})'
