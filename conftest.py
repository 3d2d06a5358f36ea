"""Test the package that is installed, not the source tree, which has no compiled core in it."""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).parent
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _ROOT]
