"""Compiles the kernels of ``kernels.cu`` to PTX: one file beside this one for each compiler and architecture.

Usage: ``python compile.py NVCC LIBNVRTC INCLUDE ...``, with the folders of the headers of CUDA, of CUB and of CuPy. The
tests read the files and need no compiler.
"""

from __future__ import annotations

import ctypes
import lzma
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent
VARIANTS = {
    "sm_90": ["-arch=sm_90", "-O3"],
    "sm_75": ["-arch=sm_75", "-O3"],
    "debug": ["-arch=sm_90", "-G"],
}


def sources() -> dict[str, str]:
    """Return the sources of the kernels by their names."""
    parts = re.split(r"^//// (\w+) \|.*\n", (HERE / "kernels.cu").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def stripped(text: str) -> str:
    """Return a PTX text without comments and without what is for debuggers only."""
    text = re.sub(r"^\s*\.section\s+[^{]*\{.*?^\s*\}", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"//.*", "", text)
    text = re.sub(r"^\s*\.(loc|file)\b.*", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\s*\$L__(tmp|func_begin|func_end|info_string)\d+:\s*$", "", text, flags=re.MULTILINE)
    text = re.sub(r" = \{\d+(, \d+)*\};", ";", text)  # texts that the kernel prints
    text = re.sub(r"[ \t]+", " ", text)
    text = re.sub(r"\s*\n\s*", "\n", text).strip() + "\n"
    words = Counter(re.findall(r"[\w$%.]+", text))
    unused = re.compile(r"^\.(?:global|visible \.global)\b[^;=]*?([\w$]+)(?:\[\d*\])?(?: = [^;]*)?;\n", re.MULTILINE)
    return unused.sub(lambda found: "" if words[found[1]] == 1 else found[0], text)


def by_nvcc(nvcc: str, includes: list[str], options: list[str], source: str) -> str:
    """Return the PTX of a source."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cu"
        path.write_text(source)
        folders = [f"-I{include}" for include in includes]
        command = [nvcc, "-ptx", *options, *folders, "-o", path.with_suffix(".ptx"), path]
        subprocess.run(command, check=True)
        return path.with_suffix(".ptx").read_text()


def by_nvrtc(library: str, includes: list[str], architecture: str, source: str) -> str:
    """Return the PTX of a source."""
    nvrtc = ctypes.CDLL(library)
    program = ctypes.c_void_p()
    source = re.sub(r"#include <(stdio|assert)\.h>", "", source)
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    options = [
        f"--gpu-architecture={architecture}".encode(),
        b"--std=c++17",
        *(f"-I{path}".encode() for path in includes),
    ]
    failed = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    kind = "ProgramLog" if failed else "PTX"
    getattr(nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{kind}")(program, text)
    if failed:
        raise RuntimeError(text.value.decode())
    return text.value.decode()


def write(name: str, texts: dict[str, str]) -> None:
    """Write the texts of a variant."""
    lines = "".join(f"//// {kernel}\n{stripped(text)}" for kernel, text in texts.items())
    (HERE / f"{name}.ptx.xz").write_bytes(lzma.compress(lines.encode(), preset=9))


def main() -> None:
    """Compile all kernels in all ways."""
    nvcc, library, *includes = sys.argv[1:]
    for variant, options in VARIANTS.items():
        compiled = partial(by_nvcc, nvcc, includes, options)
        with ThreadPoolExecutor(3) as threads:
            write(variant, dict(zip(sources(), threads.map(compiled, sources().values()), strict=True)))
    for variant, architecture in {"nvrtc": "compute_90", "nvrtc_100": "compute_100"}.items():
        compiled = partial(by_nvrtc, library, includes, architecture)
        write(variant, {name: compiled(source) for name, source in sources().items()})


if __name__ == "__main__":
    main()
