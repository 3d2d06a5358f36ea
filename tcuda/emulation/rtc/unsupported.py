"""Constructs of CUDA C++ that emulated devices do not have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcuda.emulation.rtc import constants, directives
from tcuda.emulation.rtc.tokens import Token, line_of, tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_PTX = (
    "inline PTX assembly",
    "PTX runs on a GPU only. Write the operation in C++ or with CUDA's intrinsic functions, or leave the assembly out "
    "with #ifndef __TCUDA_EMULATED__.",
)
_TEXTURE = (
    "a texture or a surface",
    "An emulated device has no texture units. Pass the array as a pointer, and read the pointer.",
)
_TENSOR = (
    "an operation of tensor cores",
    "An emulated device has no tensor cores. Compute the product with a loop.",
)
_LAUNCH = (
    "a launch of a kernel from a kernel (<<< >>>)",
    "An emulated device has no dynamic parallelism. Launch the second kernel from Python.",
)
_CLUSTER = (
    "a cluster of blocks",
    "The blocks of an emulated device run one after the other. Work with one block, or with several launches.",
)
_GRID = (
    "a barrier of the grids of several devices",
    "Write two kernels, and launch one after the other. The blocks of one grid can meet at this_grid().sync().",
)
_ASYNC = (
    "a barrier of the hardware",
    "Include <cuda/barrier> or <cuda/pipeline>, and use cuda::barrier or cuda::pipeline.",
)
_CONSTANT = (
    "expression must be a modifiable lvalue",  # the words of NVRTC
    "Kernels can only read such a variable. Write the variable from Python, by the pointer of get_global(), or declare "
    "the variable __device__.",
)
_LIBRARY = (
    "a header of CUDA's C++ libraries",
    "Emulated devices have no CUB and no Thrust, and of libcu++ only <cuda/atomic>, <cuda/barrier>, <cuda/pipeline>, "
    "<cuda/std/cassert>, <cuda/std/cfloat>, "
    "<cuda/std/climits>, <cuda/std/cmath>, <cuda/std/cstddef>, <cuda/std/cstdint>, <cuda/std/cstring>, "
    "<cuda/std/initializer_list>, <cuda/std/limits>, <cuda/std/mdspan>, <cuda/std/type_traits> and "
    "<cuda/std/utility>. Write the algorithm in the kernel, with functions such as atomicAdd().",
)
_RANDOM = (
    "a header of cuRAND",
    "Of cuRAND's headers, emulated devices have only <curand_kernel.h>.",
)
_GENERATOR = (
    "a generator of cuRAND",
    "In kernels, emulated devices have XORWOW, Philox4_32_10 and MRG32k3a. Take one of these generators, or draw the "
    "random numbers with xp.random, and pass them to the kernel.",
)
_CUPY = (
    "a header of CuPy",
    "Of CuPy's headers, emulated devices have only <cupy/atomics.cuh>, <cupy/bfloat16.cuh>, <cupy/carray.cuh>, "
    "<cupy/complex.cuh>, <cupy/cuda_workaround.h>, <cupy/float16.cuh>, "
    "<cupy/math_constants.h> and <cupy/structview.cuh>.",
)

_NAMES: dict[str, tuple[str, str]] = {
    **dict.fromkeys(["asm", "__asm", "__asm__"], _PTX),
    **dict.fromkeys(["cudaTextureObject_t", "cudaSurfaceObject_t", "CUtexObject", "CUsurfObject"], _TEXTURE),
    "nvcuda": _TENSOR,
    **dict.fromkeys(
        [
            f"curandState{name}{end}"
            for name in ("Mtgp32", "Sobol32", "ScrambledSobol32", "Sobol64", "ScrambledSobol64")
            for end in ("", "_t")
        ],
        _GENERATOR,
    ),
    "__cluster_dims__": _CLUSTER,
}
_GROUPS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(["this_multi_grid", "multi_grid_group"], _GRID),
    **dict.fromkeys(["this_cluster", "cluster_group"], _CLUSTER),
}
_PATTERNS = [
    (re.compile(r"tex(1D|2D|3D|Cubemap)\w*|surf(1D|2D|3D|Cubemap)\w*(read|write)"), "(<", _TEXTURE),
    (re.compile(r"texture|surface"), "<", _TEXTURE),
    (re.compile(r"__pipeline_arrive_on|__mbarrier_\w+"), "(", _ASYNC),
]
_INCLUDES = [
    (re.compile(r"mma\.h|crt/mma\.\w+"), _TENSOR),
    (re.compile(r"cuda/ptx|cuda_awbarrier\w*\.h"), _ASYNC),
    (re.compile(r"(cub|thrust|cuda|nv|libcudacxx|cute|cutlass)/.*"), _LIBRARY),
    (re.compile(r"curand\w*\.h"), _RANDOM),
    (re.compile(r"cupy/.*"), _CUPY),
    (re.compile(r"texture_\w+\.h|surface_\w+\.h"), _TEXTURE),
]


@dataclass(frozen=True)
class Finding:
    """An unsupported construct in a source.

    Attributes:
        line: The number of the line, from 1.
        what: The name of the construct.
        text: The text of the construct in the source.
        advice: A text that tells what to write instead.
        certain: Whether the construct is surely compiled: no condition of the preprocessor leaves the construct out.
    """

    line: int
    what: str
    text: str
    advice: str
    certain: bool

    def message(self, file: str) -> str:
        """Return the message of an error."""
        where = f"{file}:{self.line}: error: {self.what}"
        if self.what == _CONSTANT[0]:
            return f"{where} ({self.text}, a __constant__ variable). {self.advice}"
        return f"{where} ({self.text}) is not supported on emulated devices. {self.advice}"


def findings(source: str, exists: Callable[[str], bool]) -> Iterator[Finding]:
    """Yield the unsupported constructs of ``source``, except in parts that are surely left out.

    Args:
        source: The source.
        exists: Returns whether a header can be included.
    """
    conditions = directives.Conditions([])
    found = list(tokens(source))
    groups = any("cooperative_groups" in token.text for token in found)
    assigned = dict(constants.assignments(source, found)) if constants.QUALIFIER in source else {}
    for index, token in enumerate(found):
        if token.kind == "directive":
            conditions.pass_over(token)
        if conditions.false:
            continue
        line, certain = line_of(source, token.start), not conditions.unknown
        if token.kind != "directive":
            known = _CONSTANT if index in assigned else _used(found, index, groups)
            if known is not None:
                yield Finding(line, known[0], token.text, known[1], certain)
            continue
        header = directives.included(token)
        known = None if header is None or exists(header) else _included(header)
        if known is not None:
            yield Finding(line, known[0], str(header), known[1], certain)
        name, rest = directives.parts(token)
        if name == "define":
            # An unsupported construct in a macro matters only if the source uses the macro.
            body = list(tokens(rest))
            for place, part in enumerate(body):
                known = _used(body, place, groups)
                if known is not None:
                    yield Finding(line, known[0], part.text, known[1], certain=False)


def unsupported_header(header: str) -> str | None:
    """Return the advice about a header that emulated devices do not have; None if the header is none of CUDA's."""
    known = _included(header)
    return None if known is None else f"{known[0]} ({header}) is not supported on emulated devices. {known[1]}"


def _included(header: str) -> tuple[str, str] | None:
    return next((known for pattern, known in _INCLUDES if pattern.fullmatch(header)), None)


def _used(found: Sequence[Token], index: int, groups: bool) -> tuple[str, str] | None:
    token = found[index]
    if token.kind == "sign":
        return _LAUNCH if token.text == "<<<" else None
    if token.kind != "name":
        return None
    if token.text in _NAMES:
        return _NAMES[token.text]
    if groups and token.text in _GROUPS:
        return _GROUPS[token.text]
    following = found[index + 1].text if index + 1 < len(found) else ""
    for pattern, after, known in _PATTERNS:
        if following in tuple(after) and pattern.fullmatch(token.text):
            # The user may define a function with the name. The declaration of a function has a type before the name.
            return (
                None
                if index and found[index - 1].kind == "name" and following == "(" and _declares(found, index)
                else known
            )
    return None


def _declares(found: Sequence[Token], index: int) -> bool:
    return found[index - 1].text not in ("return", "else", "do", "case")
