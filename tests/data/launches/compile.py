"""Compiles the kernels of ``kernels.cu`` to ``kernels.ptx``.

Usage: ``python compile.py NVCC``. The tests read the file and need no compiler.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent


def sources() -> dict[str, str]:
    """Return the sources of the kernels by their names."""
    parts = re.split(r"^//// (\w+)\n", (HERE / "kernels.cu").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def compiled(nvcc: str, source: str) -> str:
    """Return the PTX of a source, without comments and without empty lines."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cu"
        path.write_text(source)
        subprocess.run([nvcc, "-ptx", "-arch=sm_90", "-o", path.with_suffix(".ptx"), path], check=True)
        text = re.sub(r"//.*", "", path.with_suffix(".ptx").read_text())
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"[ \t]+", " ", text)).strip() + "\n"


def main() -> None:
    """Compile all kernels."""
    (nvcc,) = sys.argv[1:]
    with ThreadPoolExecutor(2) as threads:
        texts = threads.map(lambda source: compiled(nvcc, source), sources().values())
        lines = "".join(f"//// {name}\n{text}" for name, text in zip(sources(), texts, strict=True))
    (HERE / "kernels.ptx").write_text(lines)


if __name__ == "__main__":
    main()
