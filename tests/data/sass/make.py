"""Make the listings of this folder anew: ``make.py NVCC NVDISASM``."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tcuda import _core

HERE = Path(__file__).parent
LEFT_OUT = {"powers", "matrix_product", "tensor_cores"}  # long ones


def main(nvcc: str, nvdisasm: str) -> None:
    """Write the listings, the parameters and a small cubin."""
    blocks = {}
    with tempfile.TemporaryDirectory() as folder:
        for architecture in (80, 90, 100):
            cubin = Path(folder, "cubin")
            new = ["-DNEW"] if architecture >= 90 else []
            command = [nvcc, "-std=c++17", *new, "-cubin", f"-arch=sm_{architecture}", "-o", cubin]
            subprocess.run([*command, HERE / "kernels.cu"], check=True)
            text = subprocess.run([nvdisasm, "-c", cubin], check=True, capture_output=True, text=True).stdout
            sections = re.split(r"^(?=//-)", text, flags=re.M)
            kept = [part for part in sections if [*part.split(), "", ""][1].removeprefix(".text.") not in LEFT_OUT]
            lines = [re.sub(r"\s+", " ", line).strip() for line in "".join(kept).splitlines()]
            unused = (" NOP;", ".align", ".sectioninfo", ".global", ".size", ".weak")
            lines = [
                line for line in lines if line and not line.endswith(unused[0]) and not line.startswith(unused[1:])
            ]
            (HERE / f"sm_{architecture}.txt").write_text("\n".join(lines) + "\n")
            uses = _core.uses_of_cubin(cubin.read_bytes(), None, "/")
            blocks[str(architecture)] = {name: use[0] for name, use in uses.items() if name not in LEFT_OUT}
        (HERE / "parameters.json").write_text(
            "{\n" + ",\n".join(f'"{a}": {json.dumps(b)}' for a, b in blocks.items()) + "\n}\n"
        )
        source = Path(folder, "small.cu")
        source.write_text('extern "C" __global__ void fill(float *out, const float *value) { out[3] = *value; }\n')
        subprocess.run([nvcc, "-cubin", "-arch=sm_90", source, "-o", cubin], check=True)
        (HERE / "small_cubin.txt").write_bytes(base64.encodebytes(cubin.read_bytes()))


if __name__ == "__main__":
    main(*sys.argv[1:])
