"""The function that finishes what is under way between processes."""

from __future__ import annotations

import sys

from tcuda._process.lazy import _lazy_init


def ipc_collect() -> None:
    """Finish the returns of shared memory now (``torch.cuda.ipc_collect``).

    The call waits until the memory of received arrays that are gone is back at its owners, and until all memory that
    other processes have given back is free in this process. Then the call closes what is no longer needed: mappings,
    connections, and the events of messages. All this also happens by itself. Use the call before a measurement of
    memory, or when a process stops to send arrays.

    A message that no process has received yet keeps its memory: see :func:`tcuda.multiprocessing.withdraw`.

    Example:
        >>> tcuda.ipc_collect()
        >>> reserved = tcuda.memory_reserved()  # without memory that other processes have given back
    """
    _lazy_init()
    if "tcuda.multiprocessing._messages" not in sys.modules:  # this process has neither sent nor received an array
        return
    # The imports are here, because `import tcuda` should import as few modules as possible.
    from tcuda.multiprocessing import _events, _mappings
    from tcuda.multiprocessing._connections import connections
    from tcuda.multiprocessing._received import returns
    from tcuda.multiprocessing._server import server_if_any

    returns.settle()
    _mappings.close_idle(also_young=True)
    for connection in connections():
        connection.close_if_unused()
    running = server_if_any()
    if running is not None:
        running.settle()
    _events.destroy_unused()
