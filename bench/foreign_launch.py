"""One kernel of another suite in this process: ``bench/foreign_races.py`` starts a process for each kernel.

The arguments come from the signature. An array is the middle of a block, because the kernels of verifiers may use any
index. Each launch, a *round*, has other numbers: the sizes of the launch, small numbers, the numbers of the source and
their differences. A round whose numbers the preconditions of the kernel refuse does not count.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import foreign_suites
import numpy as np
from foreign_suites import Case, Signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

CHECKS = "memory,races"
CHECKS_OF_MISTAKES = "memory,races,barriers"
"""The checks of a kernel of which the suite says only that the kernel has a mistake."""
MOST_THREADS = 1 << 14
MOST_BLOCK = 1024
_ROUNDS = 24
_HALF = 1 << 22
"""The bytes before the address that a kernel gets, and from there on."""
_DYNAMIC = 1 << 14
"""The bytes of dynamic shared memory, for a kernel that has some."""
_REFUSED = "foreign_refused"

_ANNOTATIONS = f"""#pragma once
__device__ int {_REFUSED};
#define __requires(x) ((x) ? (void)0 : (void)atomicExch(&{_REFUSED}, 1))
#define __assume(x) __requires(x)
#define __assert(...) ((void)0)
#define __invariant(...) ((void)0)
#define __candidate_invariant(...) ((void)0)
#define __global_invariant(...) ((void)0)
#define __global_candidate_invariant(...) ((void)0)
#define __function_wide_invariant(...) ((void)0)
#define __function_wide_candidate_invariant(...) ((void)0)
#define __ensures(...) ((void)0)
#define __global_requires(...) ((void)0)
#define __global_ensures(...) ((void)0)
#define __requires_fresh_array(...) ((void)0)
#define __implies(a, b) (!(a) || (b))
#define __iff(a, b) (!(a) == !(b))
#define __ite(c, a, b) ((c) ? (a) : (b))
#define __enabled() true
#define __all(x) (x)
#define __exclusive(...) true
#define __uniform_int(...) true
#define __uniform_bool(...) true
#define __distinct_int(...) true
#define __distinct_bool(...) true
#define __no_read(...) true
#define __no_write(...) true
#define __read(...) true
#define __write(...) true
#define __read_implies(...) true
#define __write_implies(...) true
#define __ptr_offset_bytes(...) 0
#define __read_offset_bytes(...) 0
#define __write_offset_bytes(...) 0
#define __is_pow2(x) (((x) & ((x) - 1)) == 0)
#define __mod_pow2(x, y) ((x) & ((y) - 1))
#define __mul24(a, b) ((a) * (b))
typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
"""
_SYNCHRONIZE = "#define synchronize(group) (group).sync()\n"
_HOST_HEADERS = (
    *("assert.h", "cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "device_launch_parameters.h", "float.h"),
    *("limits.h", "math.h", "stdint.h", "stdio.h", "stdlib.h", "string.h", "time.h", "sys/time.h", "unistd.h"),
    *("cstdio", "cstdlib", "cmath", "cassert", "iostream", "helper_cuda.h", "cutil.h", "cutil_inline.h"),
    *("device_functions.h", "vector_types.h", "vector_functions.h", "math_functions.h", "math_constants.h"),
)
_GIVEN = r"__(?:requires|assume)\s*\(\s*{name}\s*==\s*([^()&|]+)\)"
_NUMBER = re.compile(r"(?<![\w.])(\d+)(?![\w.])")
_SUITES_OWN = (
    (re.compile(r"\bcooperative_groups\b"), "cooperative_groups.h"),
    (re.compile(r"\bcurand"), "curand_kernel.h"),
)
_ELEMENTS = {
    "bool": np.uint8,
    "char": np.int8,
    "double": np.float64,
    "float": np.float32,
    "int": np.int32,
    "short": np.int16,
    "uchar": np.uint8,
    "unsigned char": np.uint8,
    "unsigned short": np.uint16,
    "ushort": np.uint16,
}
"""The types of elements; other elements are unsigned numbers of 32 bits."""
_WHOLE_GRID = re.compile(r"\bthis_grid\s*\(|\bgrid_group\b")
"""The groups of a whole grid, whose barrier needs a cooperative launch."""
_DECLARED = re.compile(r"__device__\s+([\w\s]+?[\s*&])(\w+)\s*\(([^(){};]*)\)\s*;")
_POINTER = re.compile(r"__device__\s+(?:const\s+)?[a-z]\w*(?:\s+\w+)?\s*\*\s*(\w+)\s*[=;]")
_CONSTANT = re.compile(r"__constant__\s+(?:const\s+)?\w[\w\s]*?\b(\w+)\s*(?:\[[^\]]*\]\s*)*[=;]")


class Round(NamedTuple):
    """What a launch found.

    Attributes:
        numbers: The numbers of the scalar parameters, in words.
        races: A sentence for each race whose writes differ.
        benign: A sentence for each race whose writes are of one value.
        error: The first line of the error of the launch; empty without one.
    """

    numbers: str
    races: list[str]
    benign: list[str]
    error: str


class NotRunnable(Exception):
    """The kernel cannot run here, or its arguments cannot be made."""


def headers(folder: Path, source: str) -> None:
    """Write the headers of the host, which are empty, and the annotations of verifiers, into a folder."""
    for name in _HOST_HEADERS:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#pragma once\n")
    wanted = "".join(f"#include <{header}>\n" for pattern, header in _SUITES_OWN if pattern.search(source))
    (folder / "foreign_annotations.h").write_text(f"{_ANNOTATIONS}{wanted}{_SYNCHRONIZE}")


def sizes_of(case: Case, block: Sequence[int], grid: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the threads and the blocks of the launch: those of the suite, or fewer.

    A block has at most :data:`MOST_THREADS` threads, the limit of a GPU. The launch has so few blocks that there are at
    most :data:`MOST_THREADS` threads, but at least two along each axis that has several.
    """
    threads = list(block)
    while np.prod(threads) > MOST_BLOCK:
        threads[int(np.argmax(threads))] //= 2
    blocks = list(grid)
    while np.prod(blocks) * np.prod(threads) > MOST_THREADS and max(blocks) > 2:
        blocks[int(np.argmax(blocks))] = max(2, max(blocks) // 2)
    return tuple(threads), tuple(blocks)


def numbers_of_rounds(text: str, block: Sequence[int], grid: Sequence[int]) -> list[int]:
    """Return the numbers for the parameters that are whole numbers, one for each round."""
    threads, blocks = int(np.prod(block)), int(np.prod(grid))
    written = list(dict.fromkeys(int(one) for one in _NUMBER.findall(text) if int(one) <= 1 << 16))
    differences = [abs(one - other) for place, one in enumerate(written) for other in written[:place]]
    chosen = [threads * blocks, block[0], 1, 0, 2, threads, threads * blocks // 2, grid[0] * block[0]]
    return list(dict.fromkeys([*chosen, *written, *differences]))[:_ROUNDS]


class _Arguments:
    """Makes the arguments of the rounds."""

    def __init__(self, xp: Any, text: str, signature: Signature, parameters: Any, sizes: dict[str, int]) -> None:
        self._xp, self._text, self._sizes = xp, text, sizes
        self._parameters = list(zip(signature.parameters, parameters, strict=True))
        self._kept: list[Any] = []
        for (kind, name), (form, _, _) in self._parameters:
            if form == "p" and re.search(rf"typedef[^;]*\(\s*\*\s*{re.escape(kind)}\s*\)", text):
                raise NotRunnable(f"the parameter {name} is a pointer to a function")

    def has_numbers(self) -> bool:
        return any(form in "iu" and self._given(name) is None for (_, name), (form, _, _) in self._parameters)

    def made(self, number: int, turn: int) -> tuple[list[Any], str]:
        self._kept = []
        arguments, words = [], []
        for place, ((kind, name), (form, size, _)) in enumerate(self._parameters):
            if form == "p":
                arguments.append(self._array(kind, turn))
            elif form == "s":
                arguments.append(self._structure(kind, size, number))
            elif form in "fg":
                arguments.append({2: np.float16, 4: np.float32, 8: np.float64}[size](1 + place))
            elif form == "b":
                arguments.append(bool(number % 2))
                words.append(f"{name}={bool(number % 2)}")
            else:
                given = self._given(name)
                value = number if given is None else given
                value %= self._values(kind) or 1 << (8 * size - 1)
                arguments.append(np.dtype(f"{form}{size}").type(value))
                words.append(f"{name}={value}")
        return arguments, ", ".join(words)

    def _given(self, name: str) -> int | None:
        found = re.search(_GIVEN.format(name=re.escape(name)), self._text) if name else None
        if found is None:
            return None
        text = re.sub(r"\b(\w+)\.(x|y|z)\b", lambda one: str(self._sizes.get(one[0], one[0])), found[1])
        try:
            return int(eval(text.strip().rstrip("uUlL"), {"__builtins__": {}}))  # a sum or product of numbers
        except Exception:
            return None

    def made_array(self) -> int:
        """Return the address of an array for a pointer that no parameter is."""
        return int(self._filled(np.uint32).data.ptr)

    def _values(self, kind: str) -> int:
        """Return the number of the values of an enumeration; 0 for another type."""
        found = re.search(rf"enum\s+(?:class\s+)?{re.escape(kind)}\b[^{{;]*\{{([^}}]*)\}}", self._text)
        return 0 if found is None else len([one for one in found[1].split(",") if one.strip()])

    def _array(self, kind: str, turn: int) -> Any:
        pointed = re.sub(r"\b(const|volatile|struct|__restrict__|__restrict)\b", " ", kind).rstrip("& ")
        if pointed.count("*") > 1 or self._has_pointers(pointed):
            return self._filled(np.uint64, self._filled(np.uint32).data.ptr)
        element = _ELEMENTS.get(" ".join(pointed.replace("*", " ").split()), np.uint32)
        if turn % 2 == 0:
            return self._filled(element)
        return self._filled(element, 6 - np.arange(2 * _HALF // np.dtype(element).itemsize) % 7)  # may be indices

    def _filled(self, element: Any, content: Any = None) -> Any:
        block = self._xp.zeros(2 * _HALF // np.dtype(element).itemsize, element)
        if content is not None:
            block[:] = self._xp.asarray(content, element)
        self._kept.append(block)
        return block[block.size // 2 :]

    def _has_pointers(self, kind: str, deep: int = 0) -> bool:
        word = (re.findall(r"\w+", kind) or [""])[-1]
        body = re.search(
            rf"(?:struct|class|union)\s+{word}\b[^;{{}}]*\{{(.*?)\}}\s*;|\{{([^{{}}]*)\}}\s*{word}\s*;",
            self._text,
            re.DOTALL,
        )
        if body is None or deep > 4:
            return False
        text = body[0]
        if "*" in re.sub(r"\{.*?\}", "", text.partition("{")[2]):
            return True
        inner = sorted(set(re.findall(r"\w+", text)) - {word})
        inner = [one for one in inner if re.search(rf"\b(struct|class)\s+{one}\b", self._text)]
        return any(self._has_pointers(one, deep + 1) for one in inner)

    def _structure(self, kind: str, size: int, number: int) -> Any:
        content = np.zeros(size, np.uint8)
        if self._has_pointers(kind):
            words = content[: size // 8 * 8].view(np.uint64)
            for place in range(len(words)):  # Each pointer has an array, up to a bound of memory.
                words[place] = self._filled(np.uint32).data.ptr if place < 8 else words[place % 8]
        else:
            content[: size // 4 * 4].view(np.int32)[:] = number
        return content.view(np.dtype((np.void, size)))[0]


def run(case: Case) -> dict[str, Any]:
    """Launch the kernel of a case in all rounds, and return the result as plain data.

    Raises:
        NotRunnable: The kernel cannot run here, or its arguments cannot be made.
    """
    import tcuda.emulation

    tcuda.emulation.enable(checks=CHECKS_OF_MISTAKES if case.verdict == foreign_suites.WRONG else CHECKS)
    import tcuda

    xp = tcuda.xp
    own = foreign_suites.without_comments(case.path.read_text(errors="replace"))
    text = foreign_suites.with_headers(own, case.path.parent)
    source = foreign_suites.device_code(text)
    if re.search(r"\b__axiom\s*\(", text):
        raise NotRunnable("the file has an axiom, which a verifier assumes and a run cannot")
    signature = _signature(case, text)
    source += bodies(text)
    with tempfile.TemporaryDirectory() as folder:
        headers(Path(folder), text)
        options = (
            *(f"-I{folder}", f"-I{case.path.parent}", "--pre-include=foreign_annotations.h", "-std=c++17"),
            *case.defined,
        )
        probe, names = "", [signature.name]
        asked = foreign_suites.launch_text(text, signature.name)
        if case.block is None or case.grid is None:
            if asked is None:
                raise NotRunnable("neither the list nor a launch in the file tells the size of the launch")
            probe = (
                f'\nextern "C" __global__ void foreign_sizes(unsigned* out) {{ dim3 g({asked[0]}), b({asked[1]}); '
                "out[0] = g.x; out[1] = g.y; out[2] = g.z; out[3] = b.x; out[4] = b.y; out[5] = b.z; }\n"
            )
            names.append("foreign_sizes")
        try:
            module = xp.RawModule(
                code=source + probe,
                options=options,
                name_expressions=names,
                enable_cooperative_groups=_WHOLE_GRID.search(source) is not None,
            )
            function = module.get_function(signature.name)
            parameters = function.kernel.parameters
        except Exception as error:
            raise NotRunnable(f"does not compile: {_error_line(str(error))}") from error
        block, grid = case.block, case.grid
        if probe:
            out = xp.zeros(6, np.uint32)
            module.get_function("foreign_sizes")((1,), (1,), (out,))
            told = tuple(int(one) for one in out.get())
            grid, block = grid or told[:3], block or told[3:]
        assert block is not None  # the launch has told the size
        assert grid is not None
        threads, blocks = sizes_of(case, block, grid)
        rounds = list(_rounds(xp, module, function, parameters, text, signature, threads, blocks))
    smaller = (threads, blocks) != (tuple(block), tuple(grid))
    return {
        "rounds": [one._asdict() for one in rounds],
        "launch": {"block": threads, "grid": blocks, "smaller": smaller},
        "kernel": signature.name,
    }


def bodies(source: str) -> str:
    """Return bodies for the functions that a source declares and does not define, as a verifier allows any body."""
    missing = [
        f"\n__device__ {kind}{name}({parameters}) {{ {'' if kind.strip() == 'void' else 'return {};'} }}"
        for kind, name, parameters in _DECLARED.findall(source)
        if not re.search(rf"\b{name}\s*\([^(){{}};]*\)\s*\{{", source)
    ]
    return "".join(dict.fromkeys(missing))


def _signature(case: Case, text: str) -> Signature:
    known = foreign_suites.signatures(text)
    if case.kernel is not None:
        known = [one for one in known if one.name.partition("<")[0] == case.kernel.partition("<")[0]]
    if not known:
        raise NotRunnable("no kernel is in the file")
    if known[0].name.endswith("<>"):
        raise NotRunnable(f"the kernel {known[0].name[:-2]} is a template, and no instance is in the file")
    return known[0]


def _rounds(
    xp: Any,
    module: Any,
    function: Any,
    parameters: Any,
    text: str,
    signature: Signature,
    threads: tuple[int, ...],
    blocks: tuple[int, ...],
) -> Iterator[Round]:
    import tcuda

    sizes = {
        f"{name}.{axis}": (*numbers, 1, 1, 1)[place]
        for name, numbers in (("blockDim", threads), ("gridDim", blocks))
        for place, axis in enumerate("xyz")
    }
    if len(parameters) != len(signature.parameters):
        raise NotRunnable("the parameters are not understood")
    arguments = _Arguments(xp, text, signature, parameters, sizes)
    numbers = numbers_of_rounds(text, threads, blocks) if arguments.has_numbers() else [1, 1]
    shared = _DYNAMIC if re.search(r"\bextern\s+__shared__", text) else 0
    refused = xp.ndarray((1,), np.int32, module.get_global(_REFUSED))
    pointers, constants = (_variables(xp, module, pattern.findall(text)) for pattern in (_POINTER, _CONSTANT))
    for turn, number in enumerate([numbers[0], *numbers]):
        made, words = arguments.made(number, turn)
        error = ""
        refused[:] = 0
        for pointer in pointers:
            pointer.view(np.uint64)[:] = arguments.made_array()
        for constant in constants if turn % 2 else ():
            constant[:] = turn  # the host may write constant memory before a launch
        with tcuda.sanitizer.check(mode="collect") as report:
            try:
                function(blocks, threads, made, shared_mem=shared)
                tcuda.synchronize()
            except Exception as failed:
                error = _error_line(getattr(failed, "details", None) or str(failed))
        try:
            if not error and int(refused.get()[0]):
                error = "the kernel's precondition refuses the arguments"
        except Exception as failed:
            error = error or _error_line(str(failed))
        races = [] if error else report.races  # a launch that fails may have arguments that no program passes
        told = [(race.benign, f"{race.current.text} / {race.previous.text}; {race.memory.text}") for race in races]
        found = Round(words, [one for same, one in told if not same], [one for same, one in told if same], error)
        yield found
        if found.races or error.startswith(("The block", "cudaError")):
            return


def _variables(xp: Any, module: Any, names: Iterable[str]) -> list[Any]:
    """Return the bytes of those variables of a module that the module has."""
    found = []
    for name in dict.fromkeys(names):
        with contextlib.suppress(Exception):  # no kernel uses the variable
            pointer = module.get_global(name)
            found.append(xp.ndarray((pointer.mem.size,), np.uint8, pointer))
    return found


def _error_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return ((errors or lines or ["an error without words"])[0])[:300]


def main(arguments: Sequence[str]) -> int:
    """Run the case that is given as plain data, and print the result as the last line."""
    data = json.loads(arguments[0])
    case = Case(**{**data, "path": Path(data["path"])})
    case = case._replace(
        block=case.block and tuple(case.block), grid=case.grid and tuple(case.grid), defined=tuple(case.defined)
    )
    try:
        result = run(case)
    except NotRunnable as error:
        result = {"not runnable": str(error)}
    print(f"\n{json.dumps(result)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
