"""Conditions of tests: versions of packages, devices, warnings, calls and seeds."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import random
import unittest
import unittest.mock
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from tcuda.emulation import random as device_random
from tcuda.emulation.names import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SEEDS = (99, 100, 101)


def installed(*specifiers: str) -> bool:
    """Return whether packages are installed, such as ``"scipy>=1.11"``."""
    from packaging.requirements import Requirement

    for text in specifiers:
        requirement = Requirement(text)
        if requirement.name.lower() == "cupy":
            found = catalogue.VERSION
        else:
            try:
                found = importlib.metadata.version(requirement.name)
            except importlib.metadata.PackageNotFoundError:
                return False
        if requirement.specifier and not requirement.specifier.contains(found, prereleases=True):
            return False
    return True


def numpy_satisfies(version_range: str) -> bool:
    """Return whether the version of NumPy is in a range, such as ``">=2.1"``."""
    return installed(f"numpy{version_range}")


def with_requires(*requirements: str) -> Any:
    """Return a decorator that skips a test unless packages are installed, such as ``"scipy>=1.11"``."""
    import pytest

    return pytest.mark.skipif(not installed(*requirements), reason=f"requires: {','.join(requirements)}")


def slow(*args: Any, **kwargs: Any) -> Any:
    """Mark a test as slow."""
    import pytest

    return pytest.mark.slow(*args, **kwargs)


def multi_gpu(gpu_num: int) -> Callable[[Any], Any]:
    """Return a decorator that marks a test for several devices.

    The environment variable ``CUPY_TEST_GPU_LIMIT`` says how many devices there are.
    """
    import pytest

    limit = int(os.environ.get("CUPY_TEST_GPU_LIMIT", "-1"))
    skip = pytest.mark.skipif(0 <= limit < gpu_num, reason=f"{gpu_num} GPUs required")
    return lambda test: skip(pytest.mark.multi_gpu(test))


@contextlib.contextmanager
def assert_warns(expected: Any) -> Iterator[None]:
    """Require a warning in the scope.

    Raises:
        AssertionError: The scope gave no such warning.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    if not any(isinstance(warning.message, expected) for warning in caught):
        raise AssertionError(f"{getattr(expected, '__name__', expected)} not triggerred")


@contextlib.contextmanager
def AssertFunctionIsCalled(*args: Any, times_called: int = 1, **kwargs: Any) -> Iterator[None]:
    """Replace a function by a mock in the scope, and require its calls; the arguments are those of ``mock.patch``."""
    with unittest.mock.patch(*args, **kwargs) as handle:
        yield
        assert handle.call_count == times_called


class _Seeds:
    """The scopes of fixed seeds that are open."""

    def __init__(self) -> None:
        self._open = 0

    @contextlib.contextmanager
    def fixed(self) -> Iterator[None]:
        """Seed Python's, NumPy's and the devices' random numbers in the scope."""
        states = random.getstate(), np.random.get_state()
        if not self._open:
            random.seed(_SEEDS[0])
            np.random.seed(_SEEDS[1])
            device_random.seed(_SEEDS[2])
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                random.setstate(states[0])
                np.random.set_state(states[1])

    def require_open(self) -> None:
        assert self._open, "random is not set up"


_seeds = _Seeds()


def generate_seed() -> int:
    """Return a random seed, in a test with :func:`fix_random`."""
    _seeds.require_open()
    return int(np.random.randint(0x7FFFFFFF))


def fix_random() -> Callable[[Any], Any]:
    """Return a decorator that fixes the seeds in a test function, or in all tests of a ``unittest.TestCase``."""

    def decorate(test: Any) -> Any:
        if isinstance(test, type) and issubclass(test, unittest.TestCase):
            return _fixed_case(test)
        if not callable(test):
            raise ValueError(f"Can't apply fix_random to {test}")

        @functools.wraps(test)
        def fixed(*args: Any, **kwargs: Any) -> None:
            with _seeds.fixed():
                test(*args, **kwargs)

        return fixed

    return decorate


def _fixed_case(case: Any) -> Any:
    set_up, tear_down = case.setUp, case.tearDown

    def setUp(self: Any) -> None:
        self._seeds_of_test = _seeds.fixed()
        self._seeds_of_test.__enter__()
        set_up(self)

    def tearDown(self: Any) -> None:
        try:
            tear_down(self)
        finally:
            self._seeds_of_test.__exit__(None, None, None)

    case.setUp, case.tearDown = setUp, tearDown
    return case
