"""Dask's workers on devices: one device for each worker, arrays between workers, and collectives.

The package needs Dask's ``distributed``, which ``pip install 'distributed>=2024.12'`` installs.
"""

from __future__ import annotations

from tcuda._base.public_names import public_names
from tcuda.dask._cluster import local_cluster
from tcuda.dask._group import Communicator, Group, group
from tcuda.dask._mailbox import GroupError
from tcuda.dask._plugin import Devices
from tcuda.dask._preload import dask_setup
from tcuda.dask._seeds import worker_seed
from tcuda.dask._serialization import register

register()

__all__ = ["Communicator", "Devices", "Group", "GroupError", "dask_setup", "group", "local_cluster", "worker_seed"]
__dir__ = public_names(__name__)
