"""The programs of ``tests/sanitizer/corpus`` in the spelling of torch."""

from __future__ import annotations

import re

_ARGUMENTS = r"((?:[^()]|\([^()]*\))*)"
"""The arguments of a call, with calls and tuples inside."""

# A later rule sees what the earlier rules have written.
_RULES = [
    (re.compile(pattern, re.MULTILINE), replacement)
    for pattern, replacement in (
        # Modules. torch's numbers become those of CuPy, of eight bytes.
        (r"^import (mmap|numpy)$", r""),
        (r"^import tcuda$", r"import torch"),
        (r"^from tcuda import xp$", r"torch.set_default_dtype(torch.float64)"),
        # Page-locked memory
        (r"^cudart, (.+) = tcuda\.cudart\(\), ", r"\1 = "),
        (r"^tcuda\.check_error\(cudart\.cudaHost(Unr|R)egister\(.+\)$", r""),
        (
            r"\btcuda\.memory\.(empty|zeros)_pinned\((\([^()]*\)|\d+), \"float32\"\)",
            r"torch.\1(\2, dtype=torch.float32, pin_memory=True)",
        ),
        (r"\btcuda\.memory\.(empty|zeros)_pinned\((\([^()]*\)|\d+)\)", r"torch.\1(\2, pin_memory=True)"),
        (
            r"(\S+)\.mean\(keepdims=True\)\.get\(out=(\w+), blocking=False\)",
            r"\2.copy_(\1.mean(0, keepdim=True), non_blocking=True)",
        ),
        (r"numpy\.frombuffer\(mmap\.mmap\(-1, 8192\)\)", r"torch.zeros(1024).pin_memory()"),
        (
            r"(\w+)\.get\(stream=(\w+), out=(\w+), blocking=False\)",
            r"with torch.cuda.stream(\2): \3.copy_(\1, non_blocking=True)",
        ),
        (
            r"(\w+)\.set\((\w+(?:\[0\])?), stream=(\w+)\)",
            r"with torch.cuda.stream(\3): \1.copy_(\2, non_blocking=True)",
        ),
        (r"\bx\.get\(\)", r"x.cpu()"),
        # New arrays
        (rf"\bxp\.(arange|eye|ones|zeros)\({_ARGUMENTS}\)", r'torch.\1(\2, device="cuda")'),
        (rf"\bxp\.full\((\d+), {_ARGUMENTS}\)", r'torch.full((\1,), \2, device="cuda")'),
        (rf"\bxp\.asarray\({_ARGUMENTS}\)", r'torch.tensor(\1, device="cuda")'),
        (r"\bxp\.random\.standard_normal\((\d+)\)", r'torch.randn(\1, device="cuda")'),
        (r"\bxp\.random\.uniform\((\d), (\d), (\d+)\)", r'torch.empty(\3, device="cuda").uniform_(\1, \2)'),
        (r"\[::-1\]\.copy\(\)", r".flip(0)"),
        (r"\.copy\(\)", r".clone()"),
        # Operations
        (r"\bxp\.copyto\((\w+), (\w+)\)", r"\1.copy_(\2)"),
        (r"\bxp\.random\.shuffle\((\w+)\)", r'\1.copy_(\1[torch.randperm(len(\1), device="cuda")])'),
        (r"(\w+)\.sort\(\)", r"\1.copy_(\1.sort()[0])"),
        (r"\.fill\(", r".fill_("),
        (r"\bxp\.multiply\b", r"torch.mul"),
        (r"\bxp\.(add|fft\.rfft|float32|linalg\.solve)\b", r"torch.\1"),
        (r'"(complex128|float32|int32|uint8)"', r"torch.\1"),
        (r"\baxis=", r"dim="),
        # Kernels, whose grids have three numbers
        (r"\bxp\.RawKernel\b", r"tcuda._compile_kernel"),
        (r"\bnumpy\.int32\((\w+)\)", r"\1"),
        (r"\((\d+),\), \((\d+),\)", r"(\1, 1, 1), (\2, 1, 1)"),
        # Streams and events. An external event of torch exists from its first record on.
        (r"(\w+)\.use\(\)", r"torch.cuda.set_stream(\1)"),
        (r"\btcuda\.memory\.record_stream\((\w+), (\w+)\)", r"\1.record_stream(\2)"),
        (r"(\w+) = tcuda\.Event\(external=True\)", r"\1 = torch.cuda.Event(external=True); \1.record()"),
        (r"\btcuda\b", r"torch.cuda"),
    )
]

_OTHERS = re.compile(r"\bxp\b|\bnumpy\b|\[::-|^# needs two devices$", re.MULTILINE)
"""What torch lacks, or spells in another way with several devices."""


def in_torchs_spelling(text: str) -> str | None:
    """Return a program in the spelling of torch; None if torch cannot express the program.

    Each line stays in its place, so the marks of the program hold for both spellings. A text that uses neither tcuda
    nor CuPy stays as it is.
    """
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return None if _OTHERS.search(text) else text
