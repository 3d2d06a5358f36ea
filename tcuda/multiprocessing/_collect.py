"""The end of what is under way between processes."""

from __future__ import annotations

from tcuda.multiprocessing import _events, _mappings
from tcuda.multiprocessing._connections import connections
from tcuda.multiprocessing._received import returns
from tcuda.multiprocessing._server import server_if_any


def collect() -> None:
    """Finish all returns of memory, and close what is no longer needed."""
    returns.settle()
    _mappings.close_idle(also_young=True)
    for connection in connections():
        connection.close_if_unused()
    running = server_if_any()
    if running is not None:
        running.settle()
    _events.destroy_unused()
