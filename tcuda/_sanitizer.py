"""The race detector with torch's names (``torch.cuda._sanitizer``).

:mod:`tcuda.sanitizer` has the same detector for a part of a program.
"""

from tcuda.sanitizer._access import Access, AccessType
from tcuda.sanitizer._errors import (
    CUDASanitizerErrors,
    SynchronizationError,
    UnsynchronizedAccessError,
)
from tcuda.sanitizer._switch import CUDASanitizer, cuda_sanitizer, enable_cuda_sanitizer

__all__ = [
    "Access",
    "AccessType",
    "CUDASanitizer",
    "CUDASanitizerErrors",
    "SynchronizationError",
    "UnsynchronizedAccessError",
    "cuda_sanitizer",
    "enable_cuda_sanitizer",
]
