"""The PTX of modules that CuPy has loaded as cubins: NVRTC compiles the same source again."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from cupy.cuda import compiler

if TYPE_CHECKING:
    from tcuda._cupy.loaded_kernels import LoadedSource

_MOST_BYTES = 64 << 20


@functools.lru_cache(maxsize=128)  # detectors begin and end often, as around each test
def ptx_of(source: LoadedSource) -> str | None:
    """Return the PTX of a module; None if the PTX cannot be made or read.

    A failure has no message, because the kernels run without the PTX. The detector then knows less about the kernels.
    """
    try:
        if source.path is not None:
            return _of_file(source.path)
        if source.backend != "nvrtc" or not source.text:
            return None
        return _compiled(source)
    except Exception:  # after any failure there is no PTX
        return None


def _of_file(path: str) -> str | None:
    with open(path, "rb") as file:  # noqa: PTH123  # the import of pathlib takes long
        image = file.read(_MOST_BYTES)
    return None if image.startswith(b"\x7fELF") or b".version" not in image else _text(image)


def _compiled(source: LoadedSource) -> str:
    """Compile in the way of CuPy's ``_compile_with_cache_cuda`` and ``_compile_using_nvrtc_no_warning``."""
    module: Any = compiler
    arch = source.arch if source.arch is not None else module._get_arch()
    jitify = source.jitify or "-DCUPY_USE_JITIFY" in source.options
    options = (*source.options, "-ftz=true", f"-arch=compute_{arch}")
    headers: Any = ()
    names: Any = ()
    if jitify:
        options, headers, names = module._jitify_prep(source.text, options, "tcuda.cu")
    else:
        options = (*options, "--device-as-default-execution-space")
    program = module._NVRTCProgram(
        source.text, "tcuda.cu", headers, names, name_expressions=source.name_expressions or None, method="ptx"
    )
    image, _ = program.compile(options)
    return _text(image)


def _text(image: bytes) -> str:
    return image.rstrip(b"\0").decode("utf-8", "replace")
