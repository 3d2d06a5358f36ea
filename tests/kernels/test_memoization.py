"""Functions that compute a result once: ``xp.memoize`` and ``xp.clear_memo``."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("for_each_device", [False, True])
def test_a_memoized_function_computes_each_result_once(xp, for_each_device):
    calls = []

    @xp.memoize(for_each_device=for_each_device)
    def power(base, exponent=2):
        """Return a power."""
        calls.append((base, exponent))
        return base**exponent

    assert [power(3), power(3), power(3, exponent=3), power(3, exponent=3)] == [9, 9, 27, 27]
    assert calls == [(3, 2), (3, 3)]
    assert power.__doc__ == "Return a power."
    xp.clear_memo()
    assert power(3) == 9
    assert len(calls) == 3


@pytest.mark.emulated
def test_a_function_may_have_results_for_each_device(xp):
    import tcuda

    device = xp.memoize(for_each_device=True)(tcuda.current_device)
    assert device() == 0
    with tcuda.device(1):
        assert device() == 1
