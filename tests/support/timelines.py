"""Timelines, which need another package on GPUs."""

from __future__ import annotations

import importlib.util

import pytest

from tcuda._runtime import is_emulated

needs_timelines = pytest.mark.skipif(
    not is_emulated() and importlib.util.find_spec("cupti") is None, reason="cupti-python records the traces of GPUs"
)
"""The mark of tests that make a timeline."""

__all__ = ["needs_timelines"]
