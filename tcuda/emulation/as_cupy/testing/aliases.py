"""Test cases for functions of the devices that do what the functions of NumPy with the same names do."""

from __future__ import annotations

import inspect
import unittest
from typing import Any

import numpy as np

from tcuda.emulation.as_cupy.testing.namespace import namespace


class _Alias(unittest.TestCase):
    func: str
    """The name of the function."""

    @property
    def cupy_func(self) -> Any:
        """The function of the devices."""
        return getattr(namespace(), self.func)

    @property
    def numpy_func(self) -> Any:
        """The function of NumPy."""
        return getattr(np, self.func)


class NumpyAliasBasicTestBase(_Alias):
    """Tests that compare the signatures of the two functions."""

    def test_argspec(self) -> None:
        """Require equal signatures."""
        assert inspect.signature(self.cupy_func) == inspect.signature(self.numpy_func)

    def test_docstring(self) -> None:
        """Require a docstring."""
        assert self.cupy_func.__doc__


class NumpyAliasValuesTestBase(_Alias):
    """Tests that compare the results of the two functions for the arguments ``args``."""

    args: tuple[Any, ...]

    def test_values(self) -> None:
        """Require equal results."""
        assert self.cupy_func(*self.args) == self.numpy_func(*self.args)
