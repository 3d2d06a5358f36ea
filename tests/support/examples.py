"""The number of random examples of a test: few in the usual run, many in the step ``fuzz`` of ``.ci/run``."""

from __future__ import annotations

import os

FACTOR = int(os.environ.get("TCUDA_TEST_EXAMPLES", "1"))


def examples(count: int) -> int:
    """Return ``count``, times the number in ``TCUDA_TEST_EXAMPLES``."""
    return count * FACTOR
