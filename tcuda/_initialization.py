"""The steps of initialisation, in their order, and what the environment asks for at import.

Each step is called with the runtime and the array library. A step does nothing if its work is done already.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tcuda._base import log
from tcuda._process import races
from tcuda._process.lazy import set_steps
from tcuda._process.lazy_names import bind_xp
from tcuda._process.ledger import ledger_if_any, make_ledger
from tcuda.memory._out_of_memory import raise_out_of_memory
from tcuda.memory._relief import relieve
from tcuda.random._defaults import install_generators

if TYPE_CHECKING:
    from tcuda._backend import Backend
    from tcuda._runtime.protocol import Runtime


def _make_ledger(cuda: Runtime, backend: Backend) -> None:
    make_ledger(cuda, backend, raise_out_of_memory, relieve)


def _use_ledger(cuda: Runtime, backend: Backend) -> None:
    # No later step may fail: after this step CuPy's arrays take their memory from tcuda, and do not initialise tcuda.
    ledger = ledger_if_any()
    assert ledger is not None
    backend.use_ledger(ledger)


def sanitize_if_asked() -> None:
    """Turn the race detector on if an environment variable asks for it. The call initialises nothing."""
    if "TORCH_CUDA_SANITIZER" in os.environ or "TCUDA_SANITIZER" in os.environ:
        from tcuda._sanitizer._variables import enable_as_asked

        enable_as_asked(os.environ)


def log_if_asked() -> None:
    """Print what tcuda does if an environment variable asks for that."""
    if log.VARIABLE in os.environ:
        log.print_if_asked(os.environ)


set_steps(_make_ledger, races.attach, install_generators, _use_ledger, bind_xp)
