"""Kernels that are compiled at run time (``torch.cuda._compile_kernel``)."""

from __future__ import annotations

from tcuda._base.public_names import public_names
from tcuda.kernels._compile import _compile_kernel

__all__ = ["_compile_kernel"]
__dir__ = public_names(__name__)
