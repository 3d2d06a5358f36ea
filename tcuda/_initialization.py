"""The steps of initialisation, in their order."""

from __future__ import annotations

from tcuda._late import settle
from tcuda._lazy import cuda, set_steps
from tcuda._ledger import ledger, make_ledger
from tcuda.random._defaults import install_generators


def _use_ledger() -> None:
    # The last step that can fail: from then on CuPy's arrays take memory from tcuda, and no longer initialise.
    cuda.useLedger(ledger())


set_steps(make_ledger, install_generators, _use_ledger, settle)
