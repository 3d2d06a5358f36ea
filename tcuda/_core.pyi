from collections.abc import Callable
from typing import Any, NoReturn

class HostMemory:
    """Memory of an emulated device: host memory behind a limit, in blocks as ``cudaMalloc`` gives them."""

    def __init__(self, limit: int) -> None: ...
    def allocate(self, size: int) -> int:
        """Return the address of a new block of ``size`` bytes, or 0 when the limit or the host refuses it."""
    def release(self, address: int) -> bool:
        """Free the block that starts at ``address``; False, with nothing changed, if none does."""
    def block_at(self, address: int) -> tuple[int, int] | None:
        """Return ``(address, size)`` of the live block that holds ``address``."""
    @property
    def limit(self) -> int: ...
    @property
    def used(self) -> int: ...
    @property
    def live(self) -> int: ...

def translated(
    function: Callable[..., Any], failure: type[BaseException], raise_instead: Callable[..., NoReturn]
) -> Callable[..., Any]:
    """Return ``function`` with ``raise_instead(error, *args)`` called where it raises ``failure``; costs no frame."""
