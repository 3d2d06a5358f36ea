"""The cost of calls beside many blocks, streams and graphs, compared with the cost beside few."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from growth import Curve, here, too_steep

TOOL = Path(__file__).parent / "growth.py"


def test_growth() -> None:
    """Measure in a process of its own, whose memory has nothing but the blocks of the measurement."""
    done = subprocess.run([sys.executable, str(TOOL), "--json"], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    curves = [Curve(**each) for each in json.loads(done.stdout)]
    assert {curve.kept for curve in curves} == set(here())
    assert not too_steep(curves)
