"""The state that CUDA keeps for each thread: the current device, and the green contexts that were made current."""

from __future__ import annotations

import threading


class Thread(threading.local):
    """The state of this thread.

    Attributes:
        device: The current device.
        contexts: The handles of the green contexts that were made current and not left again, each with the device
            that was current before.
    """

    device = 0
    contexts: tuple[tuple[int, int], ...] = ()
