"""Python without the lock of the interpreter (free-threaded Python)."""

from __future__ import annotations

import sysconfig

IS_FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
"""Whether Python was built to run without the lock."""
