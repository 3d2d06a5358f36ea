"""The state that CUDA keeps for each thread: the current device."""

from __future__ import annotations

import threading


class Thread(threading.local):
    """The state of this thread.

    Attributes:
        device: The current device.
    """

    device = 0
